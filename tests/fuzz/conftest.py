"""Every input of these tests runs with 1 GB to map and no more, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.judge import bounded_memory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where inputs lie, and the working directory meanwhile."""
    place, before = tmp_path_factory.mktemp("fuzz"), Path.cwd()
    os.chdir(place)
    yield place
    os.chdir(before)


@pytest.fixture(scope="module", autouse=True)
def memory() -> Iterator[None]:
    """The bound, once what the tests themselves need is loaded."""
    with bounded_memory():
        yield
