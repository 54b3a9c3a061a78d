"""Units, plain-text tables, and results that name their writers."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import ClassVar

import pytest

import tracer
from tracer.display import Shown, Writers, format_bytes, format_seconds, left, right, text_table, writer

ROOT = Path(__file__).parents[1]


def shown_classes() -> list[type[Shown]]:
    """Every class of the engine that names its writers; all modules are imported to find them."""
    for module in pkgutil.walk_packages(tracer.__path__, "tracer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # A dataclass with slots is made twice; the first try is not what its module holds.
    found = [each for each in Shown.__subclasses__() if each.__module__.startswith("tracer.")]
    return [
        each for each in found if getattr(importlib.import_module(each.__module__), each.__name__) is each
    ]


def room_of(module: str) -> tuple[str, ...]:
    return tuple(module.split(".")[:2])


def test_every_named_writer_is_there_and_stands_in_its_results_room() -> None:
    classes = shown_classes()
    assert {each.__name__ for each in classes} >= {"Trip", "Trips", "Census", "KvHandover"}
    for each in classes:
        for name in each.WRITERS.named():
            assert callable(writer(name)), name
            assert room_of(name) == room_of(each.__module__), f"{each.__name__} names {name}"


@pytest.mark.parametrize(
    ("name", "error"),
    [("tracer.nowhere:text", ImportError), ("tracer.display:nothing", AttributeError)],
)
def test_a_writer_that_is_not_there_is_found_out(name: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=name.rpartition(":")[2] if error is AttributeError else "tracer.nowhere"):
        writer(name)


def made_up_text(result: Shown) -> str:
    return f"text of {type(result).__name__}"


def made_up_values(result: Shown) -> dict[str, object]:
    return {"name": type(result).__name__}


class MadeUp(Shown):
    WRITERS: ClassVar[Writers] = Writers(f"{__name__}:made_up_text", f"{__name__}:made_up_values")


def test_print_json_and_notebooks_call_the_named_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {f"{__name__}:made_up_text": made_up_text, f"{__name__}:made_up_values": made_up_values}
    monkeypatch.setattr("tracer.display.writer", here.__getitem__)
    result = MadeUp()
    assert str(result) == "text of MadeUp"
    assert result.to_dict() == {"name": "MadeUp"}
    assert result._repr_mimebundle_() == {"text/plain": "text of MadeUp"}


def test_bytes_are_rounded_before_the_unit_is_chosen() -> None:
    assert format_bytes(9999.6) == "10 kB"
    assert format_bytes(0) == "0 B"


def test_three_digits_never_show_a_thousand_of_a_unit() -> None:
    assert [format_seconds(value) for value in (0.99949e-3, 0.9996e-3)] == ["999 µs", "1 ms"]


def test_a_table_takes_the_width_of_its_longest_cell_or_the_one_given() -> None:
    columns = [left("hop", gap=0), right("GPUs", 3, gap=1), left("why")]
    lines = text_table(columns, [("embed", 1, ""), ("dispatch", 12345, "experts")])
    assert lines == ["hop      GPUs  why", "embed      1", "dispatch 12345  experts"]


def test_the_last_column_wraps_on_a_terminal() -> None:
    columns = [left("order", gap=0), left("why")]
    lines = text_table(columns, [("tp-cp", "one two three four")], line_width=16)
    assert lines == ["order  why", "tp-cp  one two", "       three", "       four"]


def test_a_terminal_too_narrow_for_the_last_column_gets_whole_lines() -> None:
    assert text_table([left(gap=0), left()], [("a" * 20, "why")], headings=False, line_width=10) == [
        "a" * 20 + "  why"
    ]
