"""The player's pure functions, tested by Node's own runner."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_pure_functions_of_the_player() -> None:
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Node.js: install it (Debian: apt-get install nodejs)")
        pytest.skip("no Node.js: the player's pure functions are tested with `node --test tests/js`")
    files = sorted(str(path) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    run = subprocess.run([node, "--test", *files], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
