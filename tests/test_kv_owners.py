"""Who keeps a token's K/V: the source's claim, the oracle's answer, the room, and the K/V's last trip."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.keepers import LATENT, Keepers
from pool_cases import Table, decode_pool, deployments, pools
from strategies import few, sharers_of_heads

import tracer
from tracer.errors import ConfigError
from tracer.memory.fits import check_fits
from tracer.memory.kv import kv_cp, kv_dcp, positions_kept
from tracer.memory.kv_owners import kv_owners
from tracer.memory.kv_room import kv_room, kv_text
from tracer.memory.residency import residency_of, residency_to_dict
from tracer.scenario.scenario import Scenario
from tracer.serving.kv_handover import kv_handover
from tracer.serving.kv_pieces import kv_pieces, shard_counts
from tracer.serving.pools import Pools


def test_six_cuts_leaves_its_kv_on_gpus_10_11_26_27() -> None:
    owners = kv_owners(tracer.load_scenario("six-cuts"))
    assert owners.ranks == (10, 11, 26, 27)
    assert owners.elements == 2 * 8 * 128 * 8
    assert (owners.copies, owners.bytes) == (1, owners.elements * 2)
    first = {weight_shard.rank: weight_shard.heads for weight_shard in owners.of_layer(1)}
    assert first == {10: (0, 1, 2, 3), 11: (4, 5, 6, 7)}
    assert {weight_shard.rank for weight_shard in owners.of_layer(8)} == {26, 27}


def test_new_tokens_kv_goes_round_the_cp_ranks() -> None:
    scenario = tracer.load_scenario("six-cuts-decode")
    assert kv_owners(scenario, 64).ranks == (10, 11, 26, 27)
    assert kv_owners(scenario, 65).ranks == (8, 9, 24, 25)
    assert kv_owners(scenario, 0).ranks == (8, 9, 24, 25)


def test_room_counts_positions_bytes_and_what_is_left() -> None:
    scenario = tracer.load_scenario("six-cuts")
    rooms = kv_room(scenario)
    assert [room.rank for room in rooms] == [8, 9, 10, 11, 24, 25, 26, 27]
    assert {room.positions for room in rooms} == {32}
    assert {room.bytes_per_position for room in rooms} == {4 * 2 * 4 * 128 * 2}
    weights = residency_of(scenario, 8).weight_bytes
    assert rooms[0].left_bytes == 80 * 2**30 - weights - 32 * 8192
    assert "after weights and before activations" in kv_text(scenario)
    unsized = changed_model(scenario, expert_hidden=None)
    assert kv_room(unsized)[0].left_bytes == 80 * 2**30 - 32 * 8192
    assert "whose sizes the model does not state" in kv_text(unsized)
    assert "room for positions" in kv_text(scenario)
    assert "name cluster.hardware" in kv_text(
        Scenario.from_dict({"model": {"layers": 1, "hidden": 8, "heads": 2}})
    )


def changed_model(scenario: Scenario, **changes: Any) -> Scenario:
    table = scenario.to_dict()
    table["model"] |= changes
    return Scenario.from_dict(table)


@few
@given(deployments("decode", 40), st.integers(0, 60))
def test_owners_are_the_oracles(table: Table, position: int) -> None:
    scenario, keepers = Scenario.from_dict(table), Keepers(table)
    owners = kv_owners(scenario, position)
    for layer in range(1, table["model"]["layers"] + 1):
        found = {held.rank: list(held.heads) or [LATENT] for held in owners.of_layer(layer)}
        assert found == keepers.of(scenario.replica, position, layer)
    latent = "kv_lora_rank" in table["model"] and sharers_of_heads(table["mesh"]) == 1
    heads = 1 if latent else table["model"]["kv_heads"]
    assert owners.copies * heads == sum(
        len(kept) for kept in keepers.of(scenario.replica, position, 1).values()
    )


@few
@given(deployments("decode", 40), st.integers(0, 60))
def test_positions_kept_are_counted_one_by_one(table: Table, context: int) -> None:
    scenario = Scenario.from_dict(table)
    kept: Counter[int] = Counter()
    for position in range(context):
        kept.update(kv_owners(scenario, position).ranks)
    for room in kv_room(scenario, context):
        assert (room.positions, positions_kept(scenario, room.rank, context)) == (kept[room.rank],) * 2


@few
@given(st.sampled_from(["prefill", "decode"]).flatmap(lambda phase: deployments(phase, 40)))
def test_what_ranks_hold_is_what_owners_keep_with_any_dcp(table: Table) -> None:
    table["model"].setdefault("dense_hidden", 32)
    scenario = Scenario.from_dict(table)
    cached = range(scenario.position + 1 if scenario.decodes else 40)
    kept: Counter[int] = Counter()
    for position in cached:
        for held in kv_owners(scenario, position).holdings:
            kept[held.rank] += held.bytes
    rooms = kv_room(scenario)
    assert {room.rank: room.kv_bytes for room in rooms} == {room.rank: kept[room.rank] for room in rooms}
    for room in rooms:
        held = residency_of(scenario, room.rank)
        assert (held.kv.bytes, held.kv_bytes_per_token) == (kept[room.rank], room.bytes_per_position)
        assert residency_to_dict(held)["kv_bytes"] == kept[room.rank]


@pytest.mark.parametrize("latent", [False, True])
@pytest.mark.parametrize("dcp", [1, 2, 4])
def test_dcp_shares_positions_so_that_a_replica_keeps_more(latent: bool, dcp: int) -> None:
    model = {"layers": 4, "hidden": 1024, "heads": 16, "head_dim": 64, "vocab": 1000, "dense_hidden": 4096}
    rank = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64}
    model |= {"kv_heads": 16, **rank} if latent else {"kv_heads": 2}
    table = {"phase": "decode", "model": model, "mesh": {"tp": 8, "dcp": dcp}, "token": {"prompt": 64}}
    scenario = Scenario.from_dict(table | {"cluster": {"hardware": "h100"}})
    fits = check_fits(scenario)
    each = 4 * 2 * (576 if latent else 2 * 64)
    assert fits.fullest.kv_bytes_per_token == each
    assert [residency_of(scenario, gpu).kv.positions for gpu in range(2)] == (
        [65, 65] if dcp == 1 else [65 - 64 // dcp * (dcp - 1), 64 // dcp]
    )
    whole = sum(residency_of(scenario, gpu).kv.bytes for gpu in range(8))
    assert whole == sum(kv_owners(scenario, position).bytes for position in range(65))
    assert whole == 65 * 8 // dcp * each
    assert fits.tokens_a_replica == dcp * fits.tokens_on(fits.fullest)


@few
@given(pools(), st.data())
def test_every_keeper_in_the_decode_pool_gets_each_head_once_from_one_that_has_it(
    tables: tuple[Table, Table], data: st.DataObject
) -> None:
    both = Pools(*(Scenario.from_dict(table) for table in tables))
    position = data.draw(st.integers(0, both.prefill.token.prompt - 1))
    layer = data.draw(st.integers(1, both.prefill.model.layers))
    sources, targets = (
        Keepers(table).of(scenario.replica, position, layer)
        for table, scenario in zip(tables, (both.prefill, both.decode), strict=True)
    )
    got: dict[int, list[int]] = {}
    for piece in kv_pieces(both, position):
        if layer in piece.layers:
            heads = list(piece.heads) or [LATENT]
            assert set(heads) <= set(sources[piece.src])
            got.setdefault(piece.dst, []).extend(heads)
    assert {rank: sorted(heads) for rank, heads in got.items()} == targets


@few
@given(pools())
def test_the_prompts_transfer_is_the_sum_of_its_positions(tables: tuple[Table, Table]) -> None:
    both = Pools(*(Scenario.from_dict(table) for table in tables))
    prompt = both.prefill.token.prompt
    singles: Counter[tuple[int, int]] = Counter()
    for position in range(prompt):
        for piece in kv_pieces(both, position):
            singles[piece.src, piece.dst] += piece.bytes
    whole: Counter[tuple[int, int]] = Counter()
    for piece in kv_pieces(both):
        whole[piece.src, piece.dst] += piece.bytes
    assert whole == singles
    stored = sum(kv_owners(both.decode, position).bytes for position in range(prompt))
    assert sum(whole.values()) == stored
    assert sum(shard_counts(both).values()) == prompt
    arrays = both.prefill.landing.cp_of(np.arange(prompt))
    assert arrays.tolist() == [kv_cp(both.prefill, position) for position in range(prompt)]
    assert all(kv_dcp(both.decode, position) < both.decode.plan.dcp for position in range(prompt))


def test_equal_tp_sends_rank_to_rank() -> None:
    moved = kv_handover(Pools.join(tracer.load_scenario("six-cuts"), decode_pool()), 40)
    assert [(p.src, p.dst) for p in moved.pieces] == [(10, 6), (11, 7), (26, 22), (27, 23)]
    assert (moved.bytes, moved.crossings) == (32_768, 4)
    assert moved.seconds == pytest.approx(8192 / 50e9)


def test_unequal_tp_splits_and_joins_heads() -> None:
    prefill = tracer.load_scenario("six-cuts")
    wide = kv_handover(Pools.join(prefill, decode_pool(tp=4, cp=1, dp=8, pp=1, ep=32)), 40)
    assert {(p.src, p.dst, p.heads) for p in wide.pieces if p.src < 16} == {
        (10, 4, (0, 1)), (10, 5, (2, 3)), (11, 6, (4, 5)), (11, 7, (6, 7)),
    }  # fmt: skip
    narrow = kv_handover(Pools.join(prefill, decode_pool(tp=1, cp=1, dp=32, pp=1, ep=32)))
    assert {p.dst for p in narrow.pieces} == {1}
    assert narrow.bytes == 64 * 32_768
    assert narrow.seconds == pytest.approx(64 * 32_768 / 50e9)
    assert "2.1 MB in 8 pieces · 8 crossings · 41.9 µs" in str(narrow)


def test_the_transfer_as_a_picture() -> None:
    picture = kv_handover(Pools.join(tracer.load_scenario("six-cuts"), decode_pool()), 40).to_dict()
    first, second = picture["pools"]
    assert [gpu["rank"] for gpu in first["gpus"]] == [10, 11, 26, 27]
    assert [gpu["shown"] for gpu in second["gpus"]] == [38, 39, 54, 55]
    assert picture["pieces"][0]["layers"] == [1, 4]


def test_a_decode_pool_that_cannot_hold_the_kv_is_refused() -> None:
    prefill = tracer.load_scenario("six-cuts").to_dict()
    prefill["token"] = {"prompt": 4_000_000}
    rule = (
        r"pools.decode='8 requests of 4,000,001 positions' cannot hold the K/V: GPU 4 would keep 131 GB of "
        r"the 84.3 GB that weights leave"
    )
    with pytest.raises(ConfigError, match=rule + r"; try 2 a CP rank \(token.batch\)"):
        Pools.join(Scenario.from_dict(prefill), decode_pool())
    prefill["token"] = {"prompt": 40_000_000}
    with pytest.raises(
        ConfigError, match=r"try a larger tp, cp or pp, dtype.kv = 'fp8', or a prompt shorter"
    ):
        Pools.join(Scenario.from_dict(prefill), decode_pool())


def test_pools_of_two_models_prompts_or_dtypes_are_refused() -> None:
    prefill, decode = tracer.load_scenario("six-cuts"), decode_pool()
    other = decode.to_dict()
    with pytest.raises(ConfigError, match=r"pools.decode.model.layers=6 must be the prefill pool's 8"):
        Pools.join(prefill, Scenario.from_dict(other | {"model": other["model"] | {"layers": 6}}))
    with pytest.raises(ConfigError, match=r"pools.decode.dtype.kv='fp8' must be the prefill pool's bf16"):
        Pools.join(prefill, Scenario.from_dict(other | {"dtype": {"kv": "fp8"}}))
    with pytest.raises(ConfigError, match=r"pools.decode.token.prompt=32 must be the prefill pool's 64"):
        Pools(prefill, decode_pool(prompt=32))
    with pytest.raises(ConfigError, match=r"must be prefill, then decode"):
        Pools(decode, prefill)
