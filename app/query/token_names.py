"""Names of several tokens: positions, runs of positions, and other replicas."""

from __future__ import annotations

import re

from tracer.errors import ConfigError

_NAME = re.compile(r"(?:(?P<replica>\d+):)?(?P<first>\d+)(?:-(?P<last>\d+))?")
MAX_RUN = 1 << 16


def read_token_names(text: str, replica: int, field: str = "--tokens") -> list[tuple[int, int]]:
    """(replica, position) pairs; positions without a replica are ``replica``'s. Errors name ``field``.

    >>> read_token_names("0-2, 40, 3:7", replica=1)
    [(1, 0), (1, 1), (1, 2), (1, 40), (3, 7)]

    Raises:
        ConfigError: for anything else.
    """
    found: list[tuple[int, int]] = []
    for name in text.split(","):
        match = _NAME.fullmatch(name.strip())
        if match is None or len(name) > 30:
            rule = "must be positions, runs of them or REPLICA:POSITION, with commas between"
            raise ConfigError(field, text, rule, "write 0,5,40 or 0-7,3:40")
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 0 <= last - first < MAX_RUN:
            raise ConfigError(field, name.strip(), "must run upwards, and not far", "write 0-7")
        of = int(match["replica"]) if match["replica"] else replica
        found += [(of, position) for position in range(first, last + 1)]
    return found
