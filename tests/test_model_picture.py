"""The picture of a model: a cell per layer and half, the figures of the engine; the page that shows it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from app.reports.model import model_report
from layouts.pictures.model_svg import MAX_ROWS, PER_ROW, model_svg
from tracer.display import format_count
from tracer.errors import ConfigError
from tracer.memory.anatomy import Anatomy, anatomy
from tracer.model.configs.presets import model_preset_names, read_model_preset
from tracer.model.spec import ModelSpec


def texts(svg: str) -> list[str]:
    return [
        "".join(each.itertext()) for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")
    ]


@pytest.mark.parametrize("name", model_preset_names())
def test_every_shipped_model_has_a_cell_per_layer_and_half(name: str) -> None:
    found = anatomy(read_model_preset(name).spec)
    words = texts(model_svg(found))
    above, below = found.letters()
    legend = [text for text in words if re.search(r": [\d,]+ layers?$", text)]
    drawn = [text for text in words if len(text) == 1 and not text.isdigit()]
    assert sorted(drawn) == sorted([*above, *below, *_legend_letters(found)])
    assert sum(int(text.split(": ")[-1].split()[0]) for text in legend) == 2 * found.spec.layers
    for part in found.count.parts:
        assert f"{format_count(part.total)} / {format_count(part.active)}" in words


def _legend_letters(found: Anatomy) -> list[str]:
    halves = set()
    above, below = found.letters()
    for index in range(len(above)):
        first, second = found.spec.kind_of(index + 1).title.split(" + ", 1)
        halves |= {("above", above[index], first), ("below", below[index], second)}
    return [letter for _, letter, _ in halves]


def test_layers_that_are_not_drawn_are_said() -> None:
    tall = ModelSpec(
        layers=PER_ROW * MAX_ROWS + 1, hidden=64, heads=4, kv_heads=4, dense_hidden=128, vocab=1_000
    )
    assert any("the first 512 are drawn" in text for text in texts(model_svg(anatomy(tall))))


def test_the_page_shows_the_engine_s_figures_and_the_model_of_the_mesh() -> None:
    found = anatomy(read_model_preset("deepseek-v3").spec)
    page = model_report({"of": "deepseek-v3"})
    tables = {block["caption"]: block["rows"] for block in page["blocks"] if block["kind"] == "table"}
    assert page["title"] == "What is DeepSeek-V3 made of?"
    assert tables["Parameters by part"][-1][:3] == [
        "all", f"{found.count.total:,}", f"{found.count.active:,}"
    ]  # fmt: skip
    assert [row[0] for row in tables["By length"]] == ["1,024", "8,192", "32,768", "131,072"]
    own = model_report({"scenario": "six-cuts"})
    assert own["title"] == "What is six-cuts toy made of?"
    cached = {row[0]: row[1] for row in model_report({"of": "deepseek-v3", "kv": "fp8"})["blocks"][0]["rows"]}
    assert cached["K/V of one token, fp8"] == "35.1 kB"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"of": "deepseek-v33"}, r"model\.preset='deepseek-v33' is not a model that ships"),
        ({"kv": "fp9"}, r"kv='fp9' must be fp32, bf16, fp16 or fp8"),
    ],
)
def test_the_page_refuses_what_is_not_there(query: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model_report(query)
