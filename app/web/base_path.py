"""The explorer below a prefix of its host, such as ``/tokentrip`` behind a proxy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tracer.errors import ConfigError

VARIABLE = "TOKENTRIP_BASE_PATH"
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def checked_base_path(value: str) -> str:
    """A prefix without its last slash; ``""`` and ``"/"`` are the host's root.

    >>> checked_base_path("/tokentrip/"), checked_base_path("/")
    ('/tokentrip', '')

    Raises:
        ConfigError: for anything else than names after slashes.
    """
    path = value.rstrip("/")
    if path and (not _PREFIX.fullmatch(path) or {".", ".."} & set(path.split("/"))):
        rule = "must be names after slashes, of letters, digits and . _ ~ -"
        raise ConfigError("--base-path", value, rule, "try /tokentrip")
    return path


def below(base: str, app: WsgiApp) -> WsgiApp:
    """The application below a prefix, whether the proxy in front passes the prefix on or takes it off."""

    def prefixed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == base:
            query = environ.get("QUERY_STRING", "")
            start_response(
                "308 Permanent Redirect", [("Location", f"{base}/" + (f"?{query}" if query else ""))]
            )
            return [b""]
        if path.startswith(base + "/"):
            environ["PATH_INFO"] = path[len(base) :]
        environ["SCRIPT_NAME"] = base
        return app(environ, start_response)

    return prefixed
