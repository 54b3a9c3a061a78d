"""What is kept and handed over of layers that are not alike: windows, states, entries, latents."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracer.errors import ConfigError
from tracer.memory.kv_owners import kv_owners, kv_share
from tracer.memory.residency import residency_of
from tracer.model.configs.presets import model_preset
from tracer.scenario.scenario import Scenario
from tracer.serving.generation import generate
from tracer.serving.kv_handover import kv_handover_of
from tracer.serving.kv_pieces import runs_of

PROMPT = 16_384
MESHES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"tp": 2}, {"tp": 2}),
    ({"tp": 2, "cp": 2}, {"dp": 2}),
    ({"pp": 2}, {"tp": 2, "cp": 2}),
    ({"cp": 2, "kv_exchange": "all_gather"}, {"tp": 2, "pp": 2}),
]


def pool(name: str, mesh: dict[str, Any], phase: str = "prefill", prompt: int = PROMPT) -> Scenario:
    token = {"prompt": prompt} | ({"position": prompt} if phase == "decode" else {})
    tables = {"model": {"preset": name}, "mesh": mesh, "phase": phase, "token": token}
    return Scenario.from_dict(tables)


def states(scenario: Scenario, rank: int) -> int:
    """Bytes of the states that a rank makes room for."""
    return kv_share(scenario, rank, 0).bounded_bytes


@pytest.mark.parametrize("meshes", MESHES, ids=str)
@pytest.mark.parametrize(
    "name",
    ["gpt-oss-20b", "qwen3.5-35b-a3b", "nemotron-3-nano-30b-a3b", "gemma-4-26b-a4b", "deepseek-v4-flash",
     "deepseek-v3.2", "minimax-m3", "mimo-v2-flash"],
)  # fmt: skip
def test_each_decode_gpu_gets_what_it_keeps(name: str, meshes: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """A state stands on the CP rank that the last prompt position is on; the others make room for it."""
    prefill, decode = pool(name, meshes[0]), pool(name, meshes[1], "decode")
    got: Counter[int] = Counter()
    for piece in kv_handover_of(prefill, decode, whole=True).pieces:
        got[piece.dst] += piece.bytes
    mesh = decode.mesh
    for rank in range(mesh.replica_size * mesh.stages):
        kept = kv_share(decode, rank, PROMPT).bytes
        elsewhere = mesh.dense.coordinate(rank, "cp") != 0
        assert got[rank] == kept - (states(decode, rank) if elsewhere else 0), rank


def test_states_whose_heads_move_are_handed_over_by_heads() -> None:
    mesh = {"tp": 2, "cp": 2, "state_exchange": "heads"}
    prefill, decode = pool("qwen3.5-35b-a3b", mesh), pool("qwen3.5-35b-a3b", mesh, "decode")
    whole, one = pool("qwen3.5-35b-a3b", {}), pool("qwen3.5-35b-a3b", {}, "decode")
    moved = [piece for piece in kv_handover_of(prefill, decode, whole=True).pieces if not piece.positions]
    alone = [piece for piece in kv_handover_of(whole, one, whole=True).pieces if not piece.positions]
    assert sum(piece.bytes for piece in moved) == sum(piece.bytes for piece in alone)
    assert all(piece.src == piece.dst for piece in moved)
    assert {piece.src for piece in moved} == {0, 1, 2, 3}


def test_a_window_of_gpt_oss_holds_128_positions_wherever_it_is_asked() -> None:
    spec = model_preset("gpt-oss-20b")
    windows = sum(1 for kind in spec.layer_kinds if kind.attention and kind.attention.type == "sliding")
    full, each = spec.layers - windows, 2 * 8 * 64 * 2
    right = (full * PROMPT + windows * 128) * each
    one = pool("gpt-oss-20b", {}, "decode")
    assert (windows, full) == (12, 12)
    assert kv_share(one, 0, PROMPT).bytes == right
    assert residency_of(pool("gpt-oss-20b", {}), 0).kv.bytes == right
    handed = kv_handover_of(pool("gpt-oss-20b", {}), one, whole=True)
    assert handed.bytes == right
    leg = generate(pool("gpt-oss-20b", {}), 1, one).legs[1]
    assert leg.transfer is not None
    assert leg.transfer.bytes == right
    old, new = (kv_owners(one, position).bytes for position in (PROMPT - 200, PROMPT - 1))
    assert (old, new) == (full * each, spec.layers * each)


def test_one_position_of_a_window_moves_only_while_the_window_reaches_it() -> None:
    prefill, decode = pool("gpt-oss-20b", {}), pool("gpt-oss-20b", {}, "decode")
    near = kv_handover_of(prefill.with_token(position=PROMPT - 1), decode, whole=False)
    far = kv_handover_of(prefill.with_token(position=10), decode, whole=False)
    assert (near.bytes, far.bytes) == (24 * 2048, 12 * 2048)


def test_pools_of_other_kinds_are_refused() -> None:
    other = pool("gpt-oss-20b", {}, "decode").to_dict()
    for table in other["model"]["layer_kinds"]:
        if table["attention"]["type"] == "sliding":
            table["attention"]["window"] = 256
    with pytest.raises(ConfigError, match="the prefill pool's kinds of layers"):
        kv_handover_of(pool("gpt-oss-20b", {}), Scenario.from_dict(other), whole=True)


def test_runs_of_numbers() -> None:
    assert runs_of({3, 1, 2, 7}) == [range(1, 4), range(7, 8)]
