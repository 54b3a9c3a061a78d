"""A site built once for the tests that look at it, and the reason when none can be built here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from app.site.build import build_site
from tracer.errors import ConfigError

NO_NODE = "no node or npm, which a static site is made with (Debian: apt-get install nodejs npm)"


def built_site(out: Path) -> Path:
    """A new site at a path; skips where nothing can make one, and fails there in CI."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        _give_up(NO_NODE)
    try:
        build_site(out)
    except ConfigError as error:
        if error.field != "--runtime":
            raise
        _give_up(str(error))
    return out


def _give_up(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
