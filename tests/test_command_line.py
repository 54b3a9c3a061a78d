"""The command line as a user meets it: text, JSON, exit codes, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.cli import COMMANDS, main, tokentrip

HAND_WRITTEN = """
[cluster]
nodes = 4
gpus_per_node = 8

[model]
layers = 8
hidden = 4096
heads = 32
kv_heads = 8
experts = 32
top_k = 2
expert_hidden = 2048
vocab = 128000

[mesh]
tp = 2
cp = 2
dp = 4
pp = 2
ep = 16

[token]
gpu = 11

[picks]
1 = [5, 27]
"""


def run(*arguments: str) -> Result:
    """Run through ``main``, so that errors end as a user sees them."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
    result = CliRunner().invoke(tokentrip, ["--version"])
    result.exit_code = code
    result.stdout_bytes, result.stderr_bytes = out.getvalue().encode(), err.getvalue().encode()
    return result


def run_json(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_trip_prints_the_published_totals() -> None:
    result = run("trip", "six-cuts")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith(
        "Trip log: 23/32 GPUs · 15 node crossings (14 ep, 1 pp) · 41 comm ops"
    )


def test_a_hand_written_file_works(tmp_path: Path) -> None:
    file = tmp_path / "mesh.toml"
    file.write_text(HAND_WRITTEN)
    trip = run_json("trip", str(file))
    assert trip["token"] == {"replica": 2, "position": 32, "home": 11}
    assert [t["dst"] for t in trip["hops"][4]["transfers"]] == [13, 3, 2]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(trip["scenario"]))
    assert run_json("trip", str(again)) == trip


def test_config_json_with_mesh_flags(tmp_path: Path) -> None:
    config = {
        "model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 8,
        "num_key_value_heads": 4, "num_hidden_layers": 2, "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 100, "tie_word_embeddings": False,
    }  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    trip = run_json("trip", str(file), "--dp", "8", "--ep", "8", "--position", "3")
    assert trip["log"]["world_size"] == 8
    assert trip["log"]["comm_ops"] == 4
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('[model]\nconfig = "config.json"\n[mesh]\ndp = 8\nep = 8\n[token]\nposition = 3\n')
    assert run_json("trip", str(scenario)) == trip


def test_rank_and_groups() -> None:
    rank = run_json("rank", "six-cuts", "11")
    assert (rank["node"], rank["local_index"], rank["coordinates"]["ep"]) == (1, 3, 11)
    assert rank["groups"]["dp"] == [3, 7, 11, 15]
    assert rank["groups"]["replica"] == [8, 9, 10, 11]
    groups = run_json("groups", "six-cuts")["groups"]
    assert list(groups) == ["tp", "cp", "dp", "pp", "etp", "ep", "edp", "replica"]
    assert groups["ep"] == [list(range(16)), list(range(16, 32))]
    assert list(run_json("groups", "six-cuts", "--axis", "cp")["groups"]) == ["cp"]
    assert "dp      3 7 11 15" in run("rank", "six-cuts", "11").stdout


def test_rank_says_what_the_gpu_holds() -> None:
    holds = run_json("rank", "six-cuts", "11")["holds"]
    assert (holds["layers"], holds["kv_heads"], holds["experts"]["slots"]) == ([1, 4], [4, 8], [22, 23])
    text = run("rank", "six-cuts", "11").stdout
    assert "    experts       22 23; inner width 0 to 2,047" in text
    assert "K/V of 10,287,992 tokens, were nothing else in memory" in text


def test_fits_says_yes_or_no() -> None:
    fits = run_json("fits", "deepseek-v3-prefill-ep32", "--usable", "0.9")
    assert (fits["fits"], fits["fullest"]["rank"]) == (True, 0)
    assert fits["usable_bytes"] == int(0.9 * fits["hbm_bytes"])
    on_one_node = ("--dp", "8", "--ep", "8", "--replica", "0")
    no = run("fits", "deepseek-v3-prefill-ep32", *on_one_node)
    assert (no.exit_code, no.stderr) == (1, "")
    assert "DOES NOT FIT: 26.1 GB short, before any K/V" in no.stdout


def test_causal_work() -> None:
    rules = run_json("causal", "six-cuts")["rules"]
    assert [rank["units"] for rank in rules["zigzag"]["ranks"]] == [8, 8]
    assert [rank["units"] for rank in rules["contiguous"]["ranks"]] == [4, 12]
    assert "chunks 0 and 3: 1 + 7 = 8 units" in run("causal", "six-cuts").stdout


def test_several_tokens() -> None:
    trips = run_json("trip", "six-cuts", "--tokens", "40,0-1,3:40")
    names = [(token["replica"], token["position"], token["home"]) for token in trips["tokens"]]
    assert names == [(2, 40, 11), (2, 0, 8), (2, 1, 8), (3, 40, 15)]
    assert trips["tokens"][0]["log"]["node_crossings"] == 15
    text = run("trip", "six-cuts", "--tokens", "40,3:40").stdout
    assert "meet first in dispatch of layer 1" in text


def test_decode_by_flag() -> None:
    trip = run_json("trip", "six-cuts", "--phase", "decode")
    assert trip["token"] == {"replica": 2, "position": 64, "home": 11}
    assert trip["scenario"]["mesh"]["dispatch"] == "low_latency"
    assert (trip["log"]["gpus_touched"], trip["log"]["comm_ops"]) == (21, 51)
    relayed = run("trip", "six-cuts", "--phase", "decode", "--set", "mesh.dispatch=high_throughput")
    assert relayed.stdout.splitlines()[-1].startswith("Trip log: 23/32 GPUs · 15 node crossings")


def test_kv_owners_and_their_last_trip(tmp_path: Path) -> None:
    owners = run_json("kv", "six-cuts")
    assert (owners["ranks"], owners["elements"]) == ([10, 11, 26, 27], 16_384)
    assert (
        "GPUs 10, 11, 26, 27 keep 16,384 elements once: 32,768 bytes in bf16" in run("kv", "six-cuts").stdout
    )
    pool = tmp_path / "pool.toml"
    pool.write_text(
        HAND_WRITTEN.replace("tp = 2", "tp = 4").replace("cp = 2", "cp = 1").replace("gpu = 11", "slot = 0")
    )
    moved = run_json("kv", "six-cuts", "--to", str(pool))
    assert (moved["bytes"], moved["crossings"]) == (32_768, 8)
    assert "2.1 MB in 16 pieces" in run("kv", "six-cuts", "--to", str(pool), "--whole").stdout


def test_phases_generate_and_lockstep() -> None:
    assert [row["axis"] for row in run_json("phases", "six-cuts")["rows"]] == [
        "dp",
        "cp",
        "sp",
        "tp",
        "ep",
        "pp",
    ]
    assert "every stage is on the path" in run("phases", "six-cuts").stdout
    assert [leg["name"] for leg in run_json("generate", "six-cuts", "--steps", "1")["legs"]] == [
        "prefill",
        "decode",
    ]
    assert "2 decode steps, 3 tokens" in run("generate", "six-cuts", "--steps", "2").stdout
    assert run_json("lockstep", "six-cuts", "--loads", "1,2,0,4")["waited"] == [24, 16, 32, 0]
    assert "55.6%" in run("lockstep", "six-cuts", "--loads", "1,2,0,4", "--dummy", "0.1").stdout


def test_presets_name_their_sources() -> None:
    presets = run_json("presets")["presets"]
    assert {"six-cuts", "six-cuts-pp-inside-dp", "deepseek-v3-prefill-ep32"} <= {
        row["name"] for row in presets
    }
    assert all(row["source"] for row in presets)


OPENINGS = {
    "json": '{\n "schema": 1',
    "mmd": "flowchart LR",
    "seq.mmd": "sequenceDiagram",
    "dot": "digraph trip {",
    "graphml": "<graphml",
    "csv": "hop,layer,stage,kind",
    "svg": "<svg",
}


@pytest.mark.parametrize("ending", OPENINGS)
def test_export_writes_whole_files(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"trip.{ending}"
    target.write_text("old")
    written = run_json("export", "six-cuts", "--to", str(target))["written"]
    assert written == [{"file": str(target), "bytes": target.stat().st_size}]
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text().startswith(OPENINGS[ending])


WRONG = [
    (("trip", "six-cut"), "did you mean 'six-cuts'"),
    (("trip", "missing.toml"), "cannot be read"),
    (("trip", "six-cuts", "--ep", "3"), "mesh.ep=3 must divide"),
    (("trip", "six-cuts", "--set", "sp"), "must be TABLE.KEY=VALUE"),
    (("trip", "six-cuts", "--set", "token.gpu=99"), "must be a GPU of the mesh's 32"),
    (("trip", "six-cuts", "--tokens", "1,x"), "--tokens='1,x' must be positions"),
    (("trip", "six-cuts", "--tokens", "1,1"), "names position 1 of replica 2 twice"),
    (("fits", "six-cuts", "--usable", "2"), "usable=2.0 must be a part of the memory"),
    (
        ("time", "six-cuts", "--set", "cluster.hardware=mi300x"),
        "cluster.ib_bytes_per_s is not given and is needed",
    ),
    (("causal", "six-cuts", "--cp", "131072", "--ep", "16"), "whose work can be listed"),
    (("rank", "six-cuts", "99"), "rank=99 must be a whole number from 0 to 31"),
    (("groups", "six-cuts", "--axis", "xp"), "axis='xp' has no groups"),
    (("groups", "six-cuts", "--dp", "1048576", "--ep", "16"), "ranks whose groups can all be listed"),
    (("export", "six-cuts", "--to", "trip.doc"), "has no format that ends so"),
    (("export", "six-cuts", "--to", "no-such-folder/trip.json"), "cannot be written"),
    (("export", "six-cuts", "--to", "t.json", "--hop", "99"), "must be a hop from 0 to 41"),
    (("trip", "six-cuts", "--phase", "decode", "--position", "3"), "which decode does not compute again"),
    (("trip", "six-cuts", "--phase", "later"), "must be prefill or decode"),
    (("kv", "six-cuts", "--set", "mesh.dcp=2"), "mesh.dcp=2 cannot shard this cache"),
    (("lockstep", "six-cuts", "--loads", "1,b"), "must be numbers joined by commas"),
    (("tripp", "six-cuts"), "Did you mean 'trip'?"),
    (("trip",), "Missing argument 'SCENARIO'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[" ".join(case[0]) for case in WRONG])
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("text", ["{", "[]", "[1]", "\x00", "a = 1\na = 2", "[mesh]\ntp = 1e999"])
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_broken_files_are_refused(tmp_path: Path, text: str, ending: str) -> None:
    file = tmp_path / f"broken.{ending}"
    file.write_text(text)
    result = run("trip", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "tokentrip " + name in result.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_TOKENTRIP_COMPLETE" in run("completion", shell).stdout


def test_replay() -> None:
    result = run("replay", "six-cuts", "--tiny")
    assert result.exit_code == 0
    assert "equal: off one device by at most" in result.stdout
    assert "256 tokens" in result.stdout


def test_replay_as_json() -> None:
    told = json.loads(run("replay", "six-cuts", "--tiny", "--json").stdout)
    wanted = {"max_abs_error", "equal", "tokens_checked", "transfers_equal", "bytes_moved", "bytes_logged"}
    assert wanted <= told.keys()
    assert told["max_abs_error"] <= 1e-9
    assert told["bytes_moved"] == told["bytes_logged"]
    assert told["first_difference"] is None


def test_replay_with_a_fault_ends_with_1_and_says_where() -> None:
    result = run("replay", "six-cuts", "--tiny", "--fault", "rope_local")
    assert result.exit_code == 1
    assert "layer 1 attention: replica 0, position 48 on GPU 1" in result.stdout
    assert "Traceback" not in result.stdout


def test_replay_names_its_faults() -> None:
    result = run("replay", "six-cuts", "--fault", "list")
    assert result.exit_code == 0
    assert "merge_unweighted" in result.stdout


def test_replay_shrinks_a_large_model_and_says_so() -> None:
    result = run("replay", "six-cuts", "--json")
    assert (result.exit_code, "replaying it tiny" in result.stderr) == (0, True)
    assert json.loads(result.stdout)["equal"]


def test_a_reader_that_goes_and_an_interrupt_end_as_shells_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    """141 where a pipe's reader has gone and 130 after Ctrl-C, both without a traceback."""
    words = [sys.executable, "-m", "app.cli"]
    with subprocess.Popen([*words, "presets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as gone:
        assert gone.stdout is not None and gone.stderr is not None
        gone.stdout.close()  # before it writes
        assert gone.stderr.read() == b""
    assert gone.returncode == 141

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.scenario.files.preset_names", interrupted)
    with pytest.raises(SystemExit, match=r"^130$"):
        main(["presets"])
