"""``${a.b}`` and ``${oc.select:a.b,1}`` of OmegaConf files, filled in over a file's dotted keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tracer.frameworks.unread import Unread

MAX_DEPTH = 8
_WHOLE = re.compile(r"\$\{(oc\.select:)?\s*(\.*)([\w.]*?)\s*(?:,([^{}]*))?\}")


def resolved(flat: Mapping[str, object]) -> dict[str, object]:
    """The keys with every value that names another key replaced by that key's.

    A value that stays unknown (a resolver of the tool's own, an environment variable) is an
    :class:`~tracer.frameworks.unread.Unread`, which is asked for where it shapes the mesh.

    >>> resolved({"a.tp": 4, "b.tp": "${oc.select:a.tp,1}", "b.pp": "${oc.select:a.pp,2}"})
    {'a.tp': 4, 'b.tp': 4, 'b.pp': '2'}
    """
    return {key: _value(flat, key, value, 0) for key, value in flat.items()}


def _value(flat: Mapping[str, object], key: str, value: object, depth: int) -> object:
    if not isinstance(value, str) or "${" not in value:
        return value
    found = _WHOLE.fullmatch(value.strip())
    if found is None or depth > MAX_DEPTH:
        return Unread(value)
    select, dots, name, default = found.groups()
    target = name
    if dots:
        above = key.split(".")[: -len(dots)]
        target = ".".join([*above, name])
    if target in flat:
        return _value(flat, target, flat[target], depth + 1)
    if select and default is not None:
        return None if default.strip() == "null" else default.strip()
    return Unread(value)
