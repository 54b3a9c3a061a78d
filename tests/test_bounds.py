"""Sizes far beyond any machine: every command answers or refuses by name, at once, and allocates nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import COMMANDS, main
from tests.fuzz.judge import accepted, bounded_memory, command
from tracer.mesh.cluster import Cluster
from tracer.mesh.mesh import Mesh
from tracer.model.spec import ModelSpec
from tracer.scenario.landing import Landing
from tracer.scenario.scenario import Scenario

BASE = """
[cluster]
hardware = "h100"
[model]
layers = 8
hidden = 4096
heads = 32
kv_heads = 8
head_dim = 128
experts = 32
top_k = 2
expert_hidden = 2048
dense_hidden = 8192
vocab = 128000
[mesh]
tp = 2
cp = 2
dp = 4
pp = 2
ep = 16
"""
#: What is set at once, so that the rest still fits: `dp` also sets an `ep` that divides it.
SIZES = {
    "dp 10^5": {"mesh.dp": 10**5},
    "dp 10^12": {"mesh.dp": 10**12},
    "ep 10^4": {"mesh.dp": 10**4, "mesh.ep": 10**4, "model.experts": 10**4},
    "ep 10^6": {"mesh.dp": 10**6, "mesh.ep": 10**6, "model.experts": 10**6},
    "tp 10^3": {"mesh.tp": 1024, "model.heads": 1024, "model.kv_heads": 1024},
    "tp 10^9": {"mesh.tp": 10**9, "model.heads": 10**9, "model.kv_heads": 10**9},
    "cp 10^4": {"mesh.cp": 10**4, "token.prompt": 10**6},
    "cp 10^12": {"mesh.cp": 10**12},
    "pp 10^3": {"mesh.pp": 1000, "model.layers": 1000},
    "pp 10^12": {"mesh.pp": 10**12},
    "layers 4096": {"model.layers": 4096},
    "layers 10^6": {"model.layers": 10**6},
    "experts 32000": {"model.experts": 32_000},
    "experts 10^12": {"model.experts": 16 * 10**11},
    "top_k over experts": {"model.top_k": 33},
    "top_k 64": {"model.experts": 1600, "model.top_k": 64},
    "groups": {"model.experts": 1024, "model.expert_groups": 64, "model.top_groups": 32, "model.top_k": 8},
    "prompt 10^12": {"token.prompt": 10**12},
    "prompt 10^18": {"token.prompt": 10**18},
    "hidden 10^9": {"model.hidden": 10**9},
    "heads 10^5": {"model.heads": 10**5, "model.kv_heads": 10**5},
    "nodes of 10^12": {"cluster.gpus_per_node": 10**12, "cluster.nodes": 1},
    "islands of 10^12": {"cluster.nodes_per_island": 10**12},
    "dwdp": {"mesh.contract": "dwdp", "model.experts": 32_000},
    "ag_rs": {"mesh.contract": "ag_rs", "mesh.dp": 10**5, "mesh.ep": 10**5, "model.experts": 10**5},
    "a shared expert of each": {"model.shared_experts": 10**9, "model.shared_hidden": 1},
    "copies": {"placement.redundant": 16 * 10**9},
    "a slow link": {"cluster.ib_bytes_per_s": 5e-324},
    "latency": {"cluster.ib_latency_s": 1e308},
    "zero": {"mesh.tp": 0},
    "negative": {"token.prompt": -1},
    "nan": {"cluster.ib_bytes_per_s": math.nan},
    "a bool": {"mesh.tp": "true"},
    "digits of another script": {"mesh.tp": "'٣'"},
}
#: Every command that takes a scenario. `replay` and `eplb` work on arrays and
#: may take longer: sizes of `replay` are below.
LINES = {
    "trip": ("trip",), "trip as JSON": ("trip", "--json"), "decode": ("trip", "--phase", "decode"),
    "tokens": ("trip", "--tokens", "0,1"), "rank": ("rank", "0"), "groups": ("groups",),
    "one axis": ("groups", "--axis", "ep"), "traffic": ("traffic",),
    "contracts": ("traffic", "--contracts"), "fits": ("fits",), "kv": ("kv",),
    "kv in decode": ("kv", "--phase", "decode"), "causal": ("causal",), "phases": ("phases",),
    "flags": ("flags", "--for", "megatron"), "orders": ("orders",),
    "generate": ("generate", "--steps", "1"), "advise": ("advise",),
    "lockstep": ("lockstep", "--loads", "1,2"), "time": ("time",), "svg": ("export", "--to", "a.svg"),
    "census": ("census", "--tokens", "20"), "landed": ("census",),
}  # fmt: skip
OTHERS = {
    "app",
    "site",  # takes as long for every question: npm and a compilation
    "compare",
    "completion",
    "diff",
    "eplb",
    "from",
    "keys",
    "ledger",
    "model",
    "presets",
    "replay",
    "run",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A scenario without picks; the kernels compiled, and 1 GB left to map."""
    file = tmp_path_factory.mktemp("bounds") / "base.toml"
    file.write_text(BASE)
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["census", str(file), "--tokens", "20"])
    with bounded_memory():
        yield file


def test_every_command_is_asked() -> None:
    assert {words[0] for words in LINES.values()} | OTHERS == set(COMMANDS)


@pytest.mark.parametrize("name", LINES)
def test_answered_or_refused(base: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base.parent)
    word, *rest = LINES[name]
    refused = set()
    for size, changes in SIZES.items():
        sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
        place = [rest.pop(0)] if word == "rank" and rest else ["0"] if word == "rank" else []
        if command(word, base.name, *place, *sets, *rest).code == 2:
            refused.add(size)
    assert {"zero", "negative", "nan", "a bool", "digits of another script"} <= refused
    assert {"layers 10^6", "experts 10^12", "ep 10^6", "tp 10^9", "top_k over experts", "copies"} <= refused


@pytest.mark.parametrize("changes", ["mesh.dp=1000000000000", "mesh.dp=100000", "mesh.cp=1000000"])
def test_a_replay_of_too_much_is_refused(base: Path, changes: str) -> None:
    answer = command("replay", str(base), "--set", changes)
    assert "is more than the 2,048 GPUs that a replay runs" in answer.err


def test_one_rank_of_a_million_million(base: Path) -> None:
    """What is asked of one rank or one token costs the same on any mesh."""
    huge = ("--set", "mesh.dp=1000000000000")
    assert "7,999,999,999,999" not in command("rank", str(base), "7999999999999", *huge).err
    assert "of 8,000,000,000,000" in command("trip", str(base), *huge).out.replace("/", " of ")


ODD = [0, -1, 10**12, 10**30, True, 1.5, math.nan, math.inf, None, "2", "٣", [], {}]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_values_of_what_is_built_in_python(base: Path, value: object) -> None:
    """The same from Python: a value is taken or refused by name; a bool is no number."""
    odd: object = value
    refused = [
        accepted(lambda: Mesh.build(tp=odd)) is None,  # type: ignore[arg-type]
        accepted(lambda: ModelSpec(layers=odd)) is None,  # type: ignore[arg-type]
        accepted(lambda: Cluster(world_size=8, gpus_per_node=odd)) is None,  # type: ignore[arg-type]
        accepted(lambda: Scenario.from_dict({"token": {"prompt": odd}, "mesh": {"tp": 2}})) is None,
    ]
    assert all(refused) or (isinstance(value, int) and not isinstance(value, bool)) or value is None


def test_a_landing_of_any_length_is_arithmetic() -> None:
    landing = accepted(lambda: Landing(prompt=10**18, cp=10**6, tp=10**6))
    assert landing.place_of(10**18 - 1)[0] == 0
