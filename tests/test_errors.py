"""Each rule a scenario can break: the error names the field, the value, the rule and a fix."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

import tracer
from app.cli import main, tokentrip
from tracer.errors import ConfigError
from tracer.mesh.cluster import Cluster
from tracer.mesh.grid import MAX_LISTED_RANKS, RankGrid
from tracer.mesh.mesh import Mesh
from tracer.scenario.files import load_scenario

CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "mesh.ep",
        {"mesh": {"ep": 3}},
        r"mesh\.ep=3 must divide the stage's 16 ranks; try 2, 4, 8 or 16 \(Megatron",
    ),
    ("mesh.etp", {"mesh": {"etp": 5}}, r"mesh\.etp=5 must divide the stage's 16 ranks; try 1, 2, 4, 8 or 16"),
    ("mesh.ep", {"mesh": {"etp": 2}}, r"mesh\.ep=16 must divide the stage's 16 ranks / etp 2; try 2, 4 or 8"),
    (
        "mesh.edp",
        {"mesh": {"ep": 8, "edp": 4}},
        r"mesh\.edp=4 must make etp·ep·edp the stage's 16 .*leave it out, or say 2",
    ),
    ("mesh.tp", {"mesh": {"tp": 0}}, r"mesh\.tp=0 must be a whole number of at least 1"),
    ("mesh.tp", {"mesh": {"tp": True}}, r"mesh\.tp=True must be a whole number"),
    ("mesh.tp", {"mesh": {"tp": 2.0}}, r"mesh\.tp=2\.0 must be a whole number"),
    ("mesh.tp", {"mesh": {"tp": "2"}}, r"mesh\.tp='2' must be a whole number"),
    (
        "cluster.nodes",
        {"mesh": {"dp": 3, "ep": 1}},
        r"cluster\.nodes=4 x 8 GPUs per node is 32, but .* is 24; try nodes = 3",
    ),
    (
        "mesh.order",
        {"mesh": {"order": "tp-cp-dp"}},
        r"mesh\.order='tp-cp-dp' leaves out pp=2; try 'tp-cp-dp-pp'",
    ),
    ("mesh.order", {"mesh": {"order": "tp-cp-dp-xp"}}, r"has an unknown axis 'xp'; did you mean '[a-z]p'\?"),
    ("mesh.order", {"mesh": {"order": "tp-tp-dp-pp"}}, r"names axis 'tp' more than once"),
    ("mesh.order", {"mesh": {"order": 4}}, r"mesh\.order=4 must be axis names"),
    (
        "mesh.expert_order",
        {"mesh": {"expert_order": "ep-tp"}},
        r"mesh\.expert_order='ep-tp' has an unknown axis 'tp'",
    ),
    (
        "mesh.strict",
        {"mesh": {"order": "tp-cp-pp-dp", "strict": "megatron"}},
        r"needs the same pp groups in both views.*put pp last",
    ),
    ("mesh.strict", {"mesh": {"strict": "vllm"}}, r"mesh\.strict='vllm' must be megatron"),
    (
        "mesh.sp",
        {"mesh": {"sp": "on"}},
        r"mesh\.sp='on' must be megatron, off or before_dispatch; try 'megatron'",
    ),
    (
        "mesh.contract",
        {"mesh": {"contract": "tp"}},
        r"slices experts over tp: it needs ep = 1 and etp = tp = 2",
    ),
    ("mesh.dense_tp", {"mesh": {"dense_tp": 4}}, r"mesh\.dense_tp=4 must be 1 or the mesh's tp = 2"),
    ("mesh.shared_tp", {"mesh": {"shared_tp": 1}}, r"mesh\.shared_tp=1 must be whole, own or merged"),
    ("mesh.stage_layers", {"mesh": {"stage_layers": [5, 4]}}, r"must list 2 stages that add up to 8 layers"),
    (
        "mesh.pp",
        {"mesh": {"pp": 16}, "cluster": {"nodes": 32}},
        r"mesh\.pp=16 is more stages than the model's 8 layers; try 8",
    ),
    (
        "mesh.tp",
        {"mesh": {"tp": 3, "ep": 1}, "cluster": {"nodes": 6}},
        r"mesh\.tp=3 must divide the model's 32 attention heads",
    ),
    (
        "mesh.tp",
        {"model": {"heads": 36, "kv_heads": 9}},
        r"mesh\.tp=2 must divide the model's 9 KV heads, or be a multiple of them; try 1, 3, 9, 18 or 36",
    ),
    (
        "mesh.ep",
        {"model": {"experts": 20}, "picks": {}},
        r"mesh\.ep=16 must divide the model's 20 experts.*remainder = 'first'",
    ),
    ("mesh.typo", {"mesh": {"typo": 1}}, r"mesh\.typo=1 is not a known key"),
    ("mesh.conract", {"mesh": {"conract": "ep"}}, r"is not a known key; did you mean 'contract'\?"),
    ("cluster.gpus", {"cluster": {"gpus": 8}}, r"is not a known key; did you mean 'gpus_per_node'\?"),
    (
        "cluster.hardware",
        {"cluster": {"hardware": "h1000"}},
        r"cluster\.hardware='h1000' is not hardware that ships; did you mean 'h100'",
    ),
    (
        "cluster.nodes_per_island",
        {"cluster": {"nodes_per_island": 0}},
        r"nodes_per_island=0 must be a whole number",
    ),
    (
        "cluster.ib_bytes_per_s",
        {"cluster": {"ib_bytes_per_s": 0}},
        r"ib_bytes_per_s=0 must be a finite number above 0",
    ),
    (
        "cluster.ib_latency_s",
        {"cluster": {"ib_latency_s": float("nan")}},
        r"ib_latency_s=nan must be a finite number",
    ),
    (
        "cluster.placement",
        {"cluster": {"placement": [[0, 0]]}},
        r"must give \[node, local\] for each of the 32 ranks",
    ),
    (
        "cluster.placement[1]",
        {"cluster": {"placement": [[0, 0]] * 32}},
        r"cluster\.placement\[1\]=\[0, 0\] is taken by rank 0",
    ),
    ("cluster.placement[0]", {"cluster": {"placement": [[9, 0]] * 32}}, r"must lie on 4 nodes of 8 GPUs"),
    (
        "placement.slots[0]",
        {"placement": {"kind": "table", "slots": [99] * 32}},
        r"placement\.slots\[0\]=99 must be an expert from 0 to 31",
    ),
    (
        "placement.slots",
        {"placement": {"kind": "table", "slots": list(range(31))}},
        r"must divide over ep 16 \(slots % ep == 0\); try 32 slots",
    ),
    (
        "placement.slots",
        {"placement": {"kind": "table", "slots": [0] * 32}},
        r"must hold every expert; 1 has none",
    ),
    (
        "placement.kind",
        {"placement": {"kind": "linaer"}},
        r"placement\.kind='linaer' must be linear, round_robin or table",
    ),
    (
        "dtype.dispatch",
        {"dtype": {"dispatch": "int3"}},
        r"dtype\.dispatch='int3' must be bf16, fp16, fp32 or fp8",
    ),
    (
        "token.replica",
        {"token": {"replica": 4}},
        r"token\.replica=4 must be one of the 4 replicas; try 0 to 3",
    ),
    (
        "token.position",
        {"token": {"position": 64}},
        r"token\.position=64 must lie in the prompt of 64; try 0 to 63",
    ),
    (
        "token.gpu",
        {"token": {"gpu": 27, "position": None, "replica": None}},
        r"token\.gpu=27 is in stage 1.*try GPU 11",
    ),
    (
        "token.gpu",
        {"token": {"gpu": 32, "position": None, "replica": None}},
        r"must be a GPU of the mesh's 32",
    ),
    ("token.gpu", {"token": {"gpu": 3}}, r"token\.replica=2 does not hold GPU 3; try 0, or leave it out"),
    (
        "token.gpu",
        {"token": {"gpu": 10, "position": 40}},
        r"token\.gpu=10 is not where position 40 lands \(GPU 11\)",
    ),
    ("token.prompt", {"token": {"prompt": 0, "position": None}}, r"token\.prompt=0 must be a whole number"),
    ("token.draft_head", {"token": {"draft_head": "yes"}}, r"token\.draft_head='yes' must be true or false"),
    ("picks.1", {"picks": {"1": [5]}}, r"picks\.1=\[5\] must name top_k = 2 experts"),
    ("picks.1", {"picks": {"1": [5, 5]}}, r"names an expert twice"),
    ("picks.1", {"picks": {"1": [5, 32]}}, r"must name experts from 0 to 31; mend 32"),
    ("picks.9", {"picks": {"9": [5, 2]}}, r"picks\.9=\[5, 2\] names a layer outside 1 to 8"),
    ("picks.x", {"picks": {"x": [5, 2]}}, r"picks\.x=\[5, 2\] must be keyed by a layer number"),
    ("picks.1", {"model": {"dense_layers": 1}}, r"picks\.1=\[5, 27\] names a dense layer"),
    ("phase", {"phase": "training"}, r"phase='training' must be prefill or decode"),
    ("seed", {"seed": -1}, r"seed=-1 must be a whole number of at least 0"),
    ("schema", {"schema": 2}, r"schema=2 is not a schema this version reads"),
    (
        "model.config",
        {"model": {"config": "../secrets"}},
        r"model\.config='\.\./secrets' must be a path, in a scenario file",
    ),
]


def six_cuts(changes: dict[str, Any]) -> dict[str, Any]:
    tables = copy.deepcopy(load_scenario("six-cuts").to_dict())
    tables["mesh"]["edp"] = None
    for name, value in changes.items():
        if name == "model" and "config" in value:
            tables[name] = value
        elif isinstance(value, dict) and value:
            tables[name] = (tables[name] or {}) | value
        else:
            tables[name] = value
    return tables


@pytest.mark.parametrize(
    ("field", "changes", "message"), CASES, ids=[case[0] + f"-{i}" for i, case in enumerate(CASES)]
)
def test_error_names_field_value_rule_and_fix(field: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        tracer.take_trip(tracer.Scenario.from_dict(six_cuts(changes)))
    assert caught.value.fix
    assert caught.value.field.split(".")[0] == field.split(".")[0]


@pytest.mark.parametrize(
    "junk", [None, 3, "text", [1], {"mesh": 3}, {"picks": [1]}, {"cluster": {"placement": 4}}]
)
def test_junk_is_refused_by_name(junk: object) -> None:
    if junk is None:
        assert tracer.BareScenario.from_dict(junk).mesh.world_size == 1
        return
    with pytest.raises(ConfigError, match="must"):
        tracer.BareScenario.from_dict(junk)


def test_huge_meshes_answer_or_are_refused() -> None:
    mesh = Mesh.build(tp=8, cp=4, dp=10**9, pp=64, ep=32)
    rank = mesh.world_size - 5
    assert mesh.rank(**{axis: mesh.coordinates(rank)[axis] for axis in ("tp", "cp", "dp", "pp")}) == rank
    assert len(mesh.group(rank, "dp")) == 10**9
    assert rank in mesh.group(rank, "ep")
    assert rank - 1 not in mesh.group(rank, "dp")
    with pytest.raises(ConfigError, match=f"more than the {MAX_LISTED_RANKS:,} ranks"):
        mesh.groups("tp")
    with pytest.raises(ConfigError, match="more than the"):
        Cluster(world_size=10**12).graph()


def test_trips_too_long_to_hold_are_refused() -> None:
    tables = six_cuts({"model": {"layers": 4_096}, "picks": {}})
    with pytest.raises(ConfigError, match="transfers for one token"):
        tracer.take_trip(tracer.Scenario.from_dict(tables))


def test_a_missing_size_is_an_error_only_where_it_is_needed() -> None:
    tables = six_cuts({})
    tables["model"] = {"layers": 8, "experts": 32, "top_k": 2}
    scenario = tracer.Scenario.from_dict(tables)
    assert scenario.to_dict()["model"]["vocab"] is None
    with pytest.raises(
        ConfigError, match=r"model\.hidden is not given and is needed to size a row; add it to \[model\]"
    ):
        tracer.take_trip(scenario)
    tables["model"] = None
    assert tracer.BareScenario.from_dict(tables).mesh.world_size == 32
    with pytest.raises(
        ConfigError, match=r"model is not given and is needed to take a trip; add a \[model\] table"
    ):
        tracer.Scenario.from_dict(tables)


def test_grid_refuses_what_is_no_axis_rank_or_coordinate() -> None:
    grid = RankGrid(("tp", "dp"), (2, 3))
    with pytest.raises(ConfigError, match=r"axis='pp' is not an axis here; did you mean"):
        grid.group(0, "pp")
    with pytest.raises(ConfigError, match=r"rank=6 must be a whole number from 0 to 5"):
        grid.coordinates(6)
    with pytest.raises(ConfigError, match=r"dp=3 must be a coordinate from 0 to 2"):
        grid.rank({"tp": 0, "dp": 3})
    with pytest.raises(ConfigError, match="mixes the dense view and the expert view"):
        Mesh.build(tp=2).group(0, ("tp", "ep"))


def said(*words: str) -> str:
    from click.testing import CliRunner

    done = CliRunner().invoke(tokentrip, list(words), standalone_mode=False)
    assert isinstance(done.exception, ConfigError), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.toml",
            "[mesh]\ntp = \n",
            r"a\.toml' is not valid TOML at line 2, column 6: .*; mend the line",
        ),
        (
            "a.toml",
            '{"mesh": {"tp": 2}}',
            r"a\.toml' is not valid TOML .*; it looks like JSON: end",
        ),
        ("a.json", "[mesh]\ntp = 2\n", r"a\.json' is not valid JSON .*; it looks like TOML: end the name in"),
        (
            "a.json",
            '{"mesh": {"tp": 2}',
            r"a\.json' is not valid JSON at line 1, column 19: .*; mend",
        ),
        (
            "a.toml",
            '[mesh]\ntp = "2"\n',
            r"mesh\.tp='2' must be a whole number .*; write 2 without quotes",
        ),
        ("a.toml", "[mesh]\ntp = 2.0\n", r"mesh\.tp=2\.0 must be a whole number of at least 1; write 2\n"),
        ("a.toml", "[mesh]\nepp = 2\n", r"mesh\.epp=2 is not a known key; did you mean 'ep'\?"),
        ("a.toml", "[mesh]\ntensor_parallel_size = 2\n", r"did you mean 'tp'\?"),
        ("a.toml", "[mesh]\nexperts = 8\n", r"mesh\.experts=8 is not a known key; it belongs in \[model\]"),
        (
            "a.toml",
            "[model]\nnum_layers = 8\n",
            r"model\.num_layers=8 is not .*; did you mean 'layers'\?",
        ),
        ("a.toml", '[token]\nprompt_logprobs = "true"\n', r"write true without quotes"),
    ],
)
def test_a_file_that_is_wrong_says_where_and_what_to_write(
    name: str, text: str, message: str, tmp_path: Path
):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_scenario(path)


def test_a_value_from_a_file_is_refused_with_the_files_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "mine.toml"
    path.write_text("[mesh]\ntp = 0\n")
    with pytest.raises(SystemExit, match="2"):
        main(["trip", str(path)])
    assert capsys.readouterr().err.rstrip().endswith(f"(in {path})")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("export", "six-cuts", "--to", "p.pdf"), r"end it in \.anim\.svg, \.svg, .* or \.graphml"),
        (
            ("export", "six-cuts", "--to", "/no/such/dir/a.svg"),
            r"no folder /no/such/dir; make it first",
        ),
        (("trip", "six-cuts", "--order", "tp,cp,dp,pp"), "write tp-cp-dp-pp"),
        (("trip", "six-cuts", "--order", "TP-CP-DP-PP"), "write tp-cp-dp-pp"),
        (("kv", "six-cuts", "--whole"), r"--whole=True .* none is given; add --to SCENARIO"),
        (("app", "--host", "nohost.invalid", "--no-open"), r"--host='nohost\.invalid' does not resolve"),
        (("fits", "six-cuts", "--set", "cluster.hardware=l40s"), r"--set cluster\.ib_bytes_per_s=\.\.\."),
    ],
)
def test_a_mistake_is_named_with_a_fix_that_works(words: tuple[str, ...], message: str):
    assert re.search(message, said(*words))
