"""What layers of single kinds exchange over CP and TP: sums of trips against closed forms, and by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.memory.kv_bytes import index_bytes, kv_bytes_of_layer, state_bytes_of_layer
from tracer.model.configs.presets import model_preset
from tracer.scenario.scenario import Scenario
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip

GDN = {"type": "gated_delta_net", "key_heads": 4, "value_heads": 8, "key_dim": 8, "value_dim": 16, "conv": 4}
MAMBA = {"type": "mamba2", "heads": 8, "head_dim": 16, "state": 32, "groups": 1}


def layer(attention: dict[str, Any] | None, ffn: dict[str, Any] | None = None) -> dict[str, Any]:
    parts = {"attention": attention, "feed_forward": ffn}
    return {name: part for name, part in parts.items() if part is not None}


def scenario(kinds: list[dict[str, Any]], mesh: dict[str, Any], **tables: Any) -> Scenario:
    listed = [{"layers": str(number)} | kind for number, kind in enumerate(kinds, start=1)]
    model = {"layers": len(kinds), "hidden": 64, "vocab": 100, "layer_kinds": listed}
    return Scenario.from_dict({"model": model, "mesh": mesh} | tables)


def preset(name: str, mesh: dict[str, Any], **token: int) -> Scenario:
    return Scenario.from_dict({"model": {"preset": name}, "mesh": mesh, "token": token})


@pytest.mark.parametrize("name", ["deepseek-v4-flash", "deepseek-v3.2", "minimax-m3"])
@pytest.mark.parametrize("exchange", ["ring", "all_gather"])
def test_entries_and_index_keys_of_all_tokens_are_the_closed_form(name: str, exchange: str) -> None:
    """A prompt of 256 tokens: entries of 4 and of 128 tokens are all whole."""
    base = preset(name, {"cp": 4, "tp": 2, "kv_exchange": exchange}, prompt=256)
    counted: Counter[str] = Counter()
    for position in range(256):
        for hop in take_trip(base.with_token(position=position)).hops:
            if hop.axis == "cp":
                counted["cp"] += hop.bytes
    lines = [line for line in comm_volume(base).lines if line.axis == "cp"]
    each = sum(line.bytes * line.times for line in lines)
    assert each * base.mesh.world_size == pytest.approx(counted["cp"])
    assert sum(line.times for line in lines) == base.model.layers


def test_a_token_that_completes_an_entry_brings_it() -> None:
    base = preset("deepseek-v4-flash", {"cp": 2}, prompt=256)
    kinds = base.model.layer_kinds
    fine = next(n for n, kind in enumerate(kinds, 1) if getattr(kind.attention, "ratio", 0) == 4)
    own, index = kv_bytes_of_layer(kinds[fine - 1], "bf16"), index_bytes(kinds[fine - 1])
    sizes = []
    for position in (6, 7):
        hops = take_trip(base.with_token(position=position)).hops
        sizes += [h.bytes for h in hops if h.layer == fine and h.kind is HopKind.KV_EXCHANGE]
    assert sizes == [own, 2 * own + index]


@pytest.mark.parametrize(("landing", "sends"), [("zigzag", 6), ("contiguous", 3)])
def test_a_state_goes_from_the_tokens_piece_to_the_last(landing: str, sends: int) -> None:
    mesh = {"cp": 4, "tp": 2, "landing": landing}
    base = scenario([layer(GDN, {"width": 64})], mesh, token={"prompt": 64})
    size = state_bytes_of_layer(base.model.layer_kinds[0], "bf16", 2)
    assert size == 4 * 8 * 16 * 4 + (2 * 2 * 8 + 4 * 16) * 3 * 2
    first, last = (take_trip(base.with_token(position=position)) for position in (0, 63))
    passes = [hop for hop in first.hops if hop.kind is HopKind.STATE_PASS]
    assert [(len(hop.transfers), hop.bytes) for hop in passes] == [(2 * sends, 2 * sends * size)]
    assert [hop.bytes for hop in last.hops if hop.kind is HopKind.STATE_PASS] == [0]
    (line,) = [line for line in comm_volume(base).lines if line.part == "state_pass"]
    assert line.bytes == sends / 4 * size


def test_a_state_in_decode_comes_from_where_the_last_token_was() -> None:
    decode = {"phase": "decode", "token": {"prompt": 64, "position": 66}}
    base = scenario([layer(MAMBA)], {"cp": 2}, **decode)
    (hop,) = [hop for hop in take_trip(base).hops if hop.kind is HopKind.STATE_PASS]
    size = 8 * 16 * 32 * 4 + (8 * 16 + 2 * 32) * 3 * 2
    assert [(t.src, t.dst, t.bytes, t.role) for t in hop.transfers] == [(1, 0, size, "state")]


def test_heads_of_a_state_move_as_megatron_has_it() -> None:
    base = scenario([layer(GDN), layer(MAMBA)], {"cp": 2, "tp": 2, "state_exchange": "heads"})
    hops = [hop for hop in take_trip(base).hops if hop.axis == "cp"]
    assert [hop.kind for hop in hops] == [HopKind.HEADS_SCATTER, HopKind.HEADS_GATHER] * 2
    gdn = 2 * 1 * 8 + 2 * (2 * 16) + 2 * 2  # q, k of a head, v and z of two, b and a of two
    mamba = 2 * 2 * 16 + 2 * 32 + 2  # z and x of two heads, B and C of the one group, dt of two
    assert [hop.transfers[0].bytes for hop in hops] == [2 * gdn, 2 * 2 * 16, 2 * mamba, 2 * 2 * 16]


@pytest.mark.parametrize(
    ("landing", "window", "steps"),
    [("contiguous", 1, 0), ("contiguous", 2, 1), ("contiguous", 17, 1), ("contiguous", 18, 2),
     ("contiguous", 64, 3), ("zigzag", 1, 0), ("zigzag", 2, 3)],
)  # fmt: skip
def test_a_ring_ends_after_the_last_step_that_a_window_needs(landing: str, window: int, steps: int) -> None:
    """Shares of 16 tokens; zigzag's second half goes back, which is all round the ring."""
    slides = {
        "type": "sliding", "window": window, "heads": 2, "kv_heads": 2, "head_dim": 4, "v_head_dim": 4
    }  # fmt: skip
    mesh = {"cp": 4, "landing": landing}
    needed = scenario([layer(slides)], mesh | {"window_exchange": "needed"}, token={"prompt": 64})
    whole = scenario([layer(slides)], mesh, token={"prompt": 64})
    found = [
        sum(len(hop.transfers) for hop in take_trip(each).hops if hop.axis == "cp")
        for each in (needed, whole)
    ]
    assert found == [steps, 3]


def test_what_follows_the_last_layer_that_keeps_anything_is_dead() -> None:
    """Two layers read an earlier one's K/V, and the last has no mixer: they serve the token alone."""
    own = {"type": "full", "heads": 2, "kv_heads": 2, "head_dim": 4, "v_head_dim": 4}
    kinds = [layer(own), layer(own | {"shared_kv": True}), layer(None, {"width": 64})]
    base = scenario(kinds, {"tp": 2, "cp": 2}, token={"prompt": 16})
    hops = take_trip(base.with_token(position=3)).hops
    assert [(h.layer, h.kind) for h in hops if not h.dead] == [
        (0, "land"), (1, "all_gather"), (1, "kv_exchange"),
    ]  # fmt: skip
    assert not any(hop.dead for hop in take_trip(base.with_token(position=15)).hops)


def test_experts_on_a_latent_are_sent_rows_of_its_size() -> None:
    base = preset("nemotron-3-super-120b-a12b-fp8", {"dp": 4, "ep": 4}, prompt=64)
    latent = base.model.expert_row
    assert latent < (base.model.hidden or 0)
    sizes = {t.bytes for hop in take_trip(base).hops if hop.kind is HopKind.DISPATCH for t in hop.transfers}
    assert sizes == {2 * latent}


def test_picks_of_experts_without_weights_go_nowhere() -> None:
    moe = {"experts": 4, "zero_experts": 4, "top_k": 4, "width": 32}
    full = {"type": "full", "heads": 2, "kv_heads": 2, "head_dim": 4, "v_head_dim": 4}
    base = scenario(
        [layer(full, moe)] * 8, {"dp": 4, "ep": 4, "dispatch": "low_latency"}, token={"prompt": 64}
    )
    counts = Counter(
        len(picks) for position in range(64)
        for picks in base.with_token(position=position).layer_picks().values()
    )  # fmt: skip
    assert set(counts) <= {0, 1, 2, 3, 4}
    mean = sum(number * count for number, count in counts.items()) / counts.total()
    assert mean == pytest.approx(2, abs=0.1)
    (line,) = [line for line in comm_volume(base).lines if line.axis == "ep"]
    assert line.elements == 2 * 2 * 64 * 64


def test_heads_of_every_kind_are_checked_against_the_mesh() -> None:
    wide = {"type": "full", "heads": 16, "kv_heads": 16, "head_dim": 4, "v_head_dim": 4}
    with pytest.raises(ConfigError, match=r"mesh\.tp=16 must divide the model's 8 .* in its mamba2 layers"):
        scenario([layer(wide), layer(MAMBA)], {"tp": 16})
    with pytest.raises(ConfigError, match="state_exchange='heads' cuts the 4 heads"):
        scenario([layer(MAMBA)], {"tp": 2, "cp": 8, "state_exchange": "heads"})
    with pytest.raises(ConfigError, match="compressed attention and indexers work for all heads at once"):
        preset("deepseek-v3.2", {"cp": 2, "kv_exchange": "ulysses"})


def test_megatron_sends_the_heads_of_states_and_refuses_windows_on_a_ring() -> None:
    line = "--context-parallel-size 2 --tensor-model-parallel-size 2"
    nano = from_flags("megatron", line, gpus=8, model=model_preset("nemotron-3-nano-30b-a3b"))
    assert nano.scenario.plan.state_exchange == "heads"
    with pytest.raises(ConfigError, match="no sliding window attention over context parallelism by p2p"):
        from_flags("megatron", line, gpus=8, model=model_preset("gpt-oss-20b"))
    gathered = from_flags(
        "megatron", f"{line} --cp-comm-type all_gather", gpus=8, model=model_preset("gpt-oss-20b")
    )
    assert gathered.scenario.plan.kv_exchange == "all_gather"
