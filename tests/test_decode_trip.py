"""A decode step: the source's afterlife of the token, what each option changes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import tracer
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip


def changed(**tables: dict[str, Any]) -> Scenario:
    """The six-cuts mesh in decode, with keys of its tables changed."""
    base = tracer.load_scenario("six-cuts-decode").to_dict()
    base["mesh"]["edp"] = None
    for table, keys in tables.items():
        base[table] |= keys
    return Scenario.from_dict(base)


def moves(scenario: Scenario, kind: str, layer: int = 1) -> set[tuple[int, int, int]]:
    (hop,) = [hop for hop in take_trip(scenario).hops if (hop.kind, hop.layer) == (kind, layer)]
    return {(t.src, t.dst, t.bytes) for t in hop.transfers}


def test_the_first_new_token_lands_on_gpu_11_and_asks_gpus_8_and_9() -> None:
    scenario = changed()
    assert (scenario.position, scenario.home) == (64, 11)
    query, partial = 16 * 128 * 2, 16 * 128 * 2 + 16 * 2 * 4
    assert moves(scenario, "query_send") == {(10, 8, query), (11, 9, query)}
    assert moves(scenario, "partials_return") == {(8, 10, partial), (9, 11, partial)}
    assert moves(scenario, "query_send", layer=5) == {(26, 24, query), (27, 25, query)}


def test_the_log_of_six_cuts_in_decode() -> None:
    log = take_trip(changed()).log
    assert (log.gpus_touched, log.node_crossings, log.comm_ops) == (21, 17, 51)
    assert log.node_crossings_by_axis == {"tp": 0, "cp": 0, "ep": 16, "pp": 1}


def test_relays_by_option_give_the_prefill_paths_back() -> None:
    log = take_trip(changed(mesh={"dispatch": "high_throughput"})).log
    assert (log.gpus_touched, log.node_crossings, log.comm_ops) == (23, 15, 51)


def test_nothing_is_dead_and_every_new_token_feeds_the_head() -> None:
    for position in (64, 65, 100):
        trip = take_trip(changed(token={"position": position}))
        assert not any(hop.dead for hop in trip.hops)
        assert [hop.kind for hop in trip.hops[-2:]] == [HopKind.HEAD_COPY, HopKind.LOGITS_GATHER]


def test_new_tokens_go_round_the_cp_ranks() -> None:
    homes = [changed(token={"position": 64 + step}).home for step in range(4)]
    assert homes == [11, 9, 11, 9]


@pytest.mark.parametrize(
    ("batch", "slots"), [(2, [10, 11]), (3, [10, 10, 11]), (4, [10, 10, 11, 11]), (1, [10])]
)
def test_slots_of_the_batch_are_cut_over_tp_with_padding(batch: int, slots: list[int]) -> None:
    assert [changed(token={"batch": batch, "slot": slot}).home for slot in range(batch)] == slots


def test_a_gpu_means_its_first_new_position_and_slot() -> None:
    scenario = changed(token={"gpu": 8, "position": None, "slot": None, "replica": None, "batch": 6})
    assert (scenario.position, scenario.home, scenario.slot) == (65, 8, 0)
    assert scenario.with_token(position=67).home == 8
    assert changed(token={"gpu": 11, "position": None, "slot": None, "batch": 6}).slot == 3


def test_pass_kv_sends_the_tokens_own_kv() -> None:
    scenario = changed(mesh={"decode_attention": "pass_kv"})
    own = 2 * 4 * 128 * 2
    assert moves(scenario, "kv_exchange") == {(10, 8, own), (11, 9, own)}
    assert "K/V of the 64 positions before this one goes to the other 1 CP ranks too: 262,144 bytes" in str(
        take_trip(scenario)
    )


def test_auto_says_its_rule_with_its_numbers() -> None:
    text = str(take_trip(changed()))
    assert "pass-Q: 1 new / 65 in context = 0.0154 <= 2,048 K/V / 4,096 query elements = 0.5" in text
    few = changed(model={"kv_heads": 2, "heads": 32}, token={"prompt": 4, "position": 4})
    assert "pass-KV: 1 new / 5 in context = 0.2 > 512 K/V / 4,096 query elements = 0.125" in str(
        take_trip(few)
    )


def test_with_dcp_the_query_travels_however_short_the_context() -> None:
    model = {"layers": 1, "hidden": 16, "heads": 4, "kv_heads": 1, "head_dim": 4, "vocab": 8}
    table = {"phase": "decode", "model": model, "token": {"prompt": 1}, "cluster": {"gpus_per_node": 8}}
    short = Scenario.from_dict(table | {"mesh": {"tp": 4, "cp": 2, "dcp": 2, "decode_attention": "auto"}})
    hops = [str(hop.kind) for hop in take_trip(short).hops]
    assert "query_send" in hops
    assert "kv_exchange" not in hops
    assert "decode attention is pass-Q: dcp = 2 shards every context" in str(take_trip(short))


def test_the_rule_has_the_published_threshold_of_llama_405b() -> None:
    scenario = Scenario.from_dict(
        {"phase": "decode", "model": {"preset": "llama-3.1-405b"}, "mesh": {"tp": 8, "cp": 2}}
    )
    from tracer.trip.hops.cp import pass_rule

    assert pass_rule(scenario).threshold == 0.125


@pytest.mark.parametrize("sp", ["megatron", "off", "before_dispatch"])
def test_sp_three_ways(sp: str) -> None:
    trip = take_trip(changed(mesh={"sp": sp}))
    land, sends = trip.hops[0], [hop for hop in trip.hops if hop.kind == HopKind.PP_SEND]
    assert land.held == ((11,) if sp == "megatron" else (10, 11))
    assert len(sends[0].transfers) == len(land.held)
    assert ("head_copy" in {hop.kind for hop in trip.hops}) == (sp == "megatron")
    dispatch = next(hop for hop in trip.hops if hop.kind == HopKind.DISPATCH)
    assert {t.src for t in dispatch.transfers} == ({10, 11} if sp == "off" else {11})


MLA = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "kv_heads": None, "head_dim": None,
}  # fmt: skip


def test_mla_sends_absorbed_queries_and_latent_outputs() -> None:
    scenario = changed(model=MLA)
    assert {size for _, _, size in moves(scenario, "query_send")} == {16 * (512 + 64) * 2}
    assert {size for _, _, size in moves(scenario, "partials_return")} == {16 * (512 * 2 + 2 * 4)}


def test_dcp_is_carved_from_tp_and_asks_the_ranks_that_share_a_kv_head() -> None:
    """Qwen3-235B with tp 8: each of 4 KV heads stands twice, and dcp 2 removes the copies (vLLM's case)."""
    table = {
        "phase": "decode", "model": {"preset": "qwen3-235b-a22b"}, "mesh": {"tp": 8, "ep": 8, "dcp": 2},
        "token": {"prompt": 100, "position": 100},
    }  # fmt: skip
    scenario = Scenario.from_dict(table)
    asked = {(src, dst) for src, dst, _ in moves(scenario, "query_send")}
    assert asked == {(rank, rank ^ 1) for rank in range(8)}
    assert "dcp 2 carved from tp 8: the position's K/V is on TP ranks 0, 2, 4, 6" in str(take_trip(scenario))


REFUSED = [
    (
        {"mesh": {"dcp": 2}},
        r"mesh.dcp=2 cannot shard this cache: with tp 2 each of the 8 KV heads stands on 1 rank,",
    ),
    ({"mesh": {"dcp": 3}}, r"mesh.dcp=3 must divide tp = 2"),
    ({"mesh": {"dcp": 2, "decode_attention": "pass_kv"}, "model": MLA}, r"try 'pass_q', or dcp = 1"),
    ({"mesh": {"decode_attention": "pass_v"}}, r"must be pass_q, pass_kv or auto"),
    ({"mesh": {"dcp": 0}}, r"mesh.dcp=0 must be a whole number of at least 1"),
    (
        {"token": {"position": 40}},
        r"token.position=40 is in the prompt of 64.*try 64 or more, or phase = 'prefill'",
    ),
    ({"token": {"slot": 2}}, r"token.slot=2 must be one of the batch of 2; try 0 to 1, or token.batch = 3"),
    ({"token": {"batch": 0}}, r"token.batch=0 must be a whole number"),
    (
        {"token": {"gpu": 11, "position": None, "slot": None, "batch": 1}},
        r"gets only padding of a batch of 1",
    ),
    ({"token": {"gpu": 9}}, r"token.gpu=9 is not where position 64 lands \(GPU 11\)"),
]


@pytest.mark.parametrize(("tables", "message"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        changed(**tables)


def test_a_prefill_position_past_the_prompt_names_decode() -> None:
    with pytest.raises(ConfigError, match=r"must lie in the prompt of 64; try 0 to 63, or phase = 'decode'"):
        tracer.load_scenario("six-cuts").with_token(position=64)


def test_phases_change_into_each_other() -> None:
    prefill = tracer.load_scenario("six-cuts")
    decode = prefill.with_phase("decode")
    assert (decode.home, decode.position, decode.plan.dispatch) == (11, 64, "low_latency")
    back = decode.with_phase("prefill")
    assert (back.position, back.plan.dispatch, back.replica) == (0, "high_throughput", 2)
    assert prefill.with_phase("prefill") is prefill
