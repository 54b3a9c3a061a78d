"""The axes a mesh is cut along, and order strings such as ``tp-cp-dp-pp``."""

from __future__ import annotations

import re
from enum import StrEnum

from tracer.errors import ConfigError, nearest


class Axis(StrEnum):
    """One way of cutting the work.

    ``tp cp dp pp`` are the dense view; ``etp ep edp`` the expert view, over the same ranks.
    """

    TP = "tp"
    CP = "cp"
    DP = "dp"
    PP = "pp"
    ETP = "etp"
    EP = "ep"
    EDP = "edp"


DENSE_AXES = ("tp", "cp", "dp", "pp")
EXPERT_AXES = ("etp", "ep", "edp")


def parse_order(field: str, order: object, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Axis names of an order string, fastest first.

    >>> parse_order("mesh.order", "tp-cp-dp-pp", DENSE_AXES)
    ('tp', 'cp', 'dp', 'pp')

    Raises:
        ConfigError: for a name that is unknown or stands twice.
    """
    if not isinstance(order, str):
        raise ConfigError(field, order, "must be axis names joined by '-'", f"try {'-'.join(allowed)!r}")
    names = tuple(order.split("-"))
    meant = tuple(re.split(r"[-,;:/>_ ]+", order.strip().lower()))
    if meant != names and set(meant) <= set(allowed) and len(set(meant)) == len(meant):
        raise ConfigError(field, order, "must be axis names joined by '-'", f"write {'-'.join(meant)}")
    for name in names:
        if name not in allowed:
            raise ConfigError(field, order, f"has an unknown axis {name!r}", nearest(name, list(allowed)))
        if names.count(name) > 1:
            raise ConfigError(
                field, order, f"names axis {name!r} more than once", f"try {'-'.join(allowed)!r}"
            )
    return names
