"""What hypothesis draws is the same in every run of the tests, whatever else ran before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from draws import USUAL, draws
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

STRANGE = 823_543_117
derandomized = pytest.mark.skipif(not settings.default.derandomize, reason="a fuzz draws anew")


@derandomized
def test_a_run_draws_as_often_as_the_last() -> None:
    assert settings.default.max_examples == USUAL
    assert (draws(USUAL), draws(25), draws(2_000)) == (USUAL, 25, 2_000)


def drawn() -> list[int]:
    found: list[int] = []

    @settings(max_examples=400)
    @given(st.integers(0, 1 << 40))
    def look(number: int) -> None:
        found.append(number)

    look()
    return found


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a module of ours that holds a number like no other."""
    file = folder / "strange.py"
    file.write_text(f"NUMBER = {STRANGE}\n")
    spec = importlib.util.spec_from_file_location("strange", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "strange", module)


@derandomized
def test_draws_do_not_depend_on_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    imported(tmp_path, monkeypatch)
    assert drawn() == before


@pytest.mark.skipif(
    not hasattr(providers, "is_local_module_file"), reason="this hypothesis reads no modules for its draws"
)
def test_a_dependence_on_what_is_imported_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what conftest.py turns off, the number of a module is among the draws."""
    monkeypatch.setattr(providers, "is_local_module_file", lambda path: path == str(tmp_path / "strange.py"))
    monkeypatch.setattr(providers, "_local_constants", providers._local_constants)
    monkeypatch.setattr(providers, "_sys_modules_len", None)
    # Modules are remembered by their address, which a module that is gone leaves to the next.
    monkeypatch.setattr(providers, "_seen_modules", set())
    imported(tmp_path, monkeypatch)
    try:
        assert STRANGE in drawn()
    finally:
        providers.CONSTANTS_CACHE.cache.clear()
