"""What each GPU holds: against the oracle unit by unit, in sums, and in figures worked out by hand."""

from __future__ import annotations

import json
import time
from collections import Counter
from fractions import Fraction
from importlib import resources
from typing import Any

import jsonschema
import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import OracleMesh, OracleWeights, landing_table
from oracle.heads import inner_group
from strategies import scenarios, sharers_of_heads

import tracer
from tracer.memory.fits import check_fits
from tracer.memory.reports import rank_report, rank_text
from tracer.memory.residency import Residency, residency_of
from tracer.memory.weights import WeightShard, whole_weights
from tracer.model.configs import model_preset
from tracer.model.dtype import BYTES
from tracer.model.parameters import count_parameters, expert_bytes
from tracer.model.weights import WeightPart
from tracer.scenario.scenario import BareScenario
from tracer.scenario.scenario import Scenario as EngineScenario
from tracer.trip.trip import take_trip

Scenario = dict[str, Any]
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]
#: Each example asks every GPU, so fewer examples ask as much.
QUARTER = settings(suppress_health_check=SLOW_DRAWS, deadline=None, max_examples=draws(25))
MAX_VOCAB = 30


@st.composite
def deployments(draw: st.DrawFn) -> Scenario:
    """A drawn scenario with what a trip does not ask: tied ends, a q latent, a shared expert's gate."""
    phase = draw(st.sampled_from(["prefill", "prefill", "decode"]), label="phase")
    scenario = draw(scenarios(phase=phase))
    model = scenario["model"]
    model["vocab"] = min(model["vocab"], MAX_VOCAB)
    if draw(st.booleans(), label="tied"):
        model["tie_embeddings"] = True
    if "kv_lora_rank" in model and draw(st.booleans(), label="q latent"):
        model["q_lora_rank"] = 24
    if model.get("shared_experts") and draw(st.booleans(), label="gate"):
        model["shared_gate"] = True
    return scenario


def engine(scenario: Scenario) -> EngineScenario:
    return EngineScenario.from_dict(scenario)


def by_copies(weights: tuple[WeightShard, ...]) -> Counter[tuple[str, str, int]]:
    """(part, matrix, how often the mesh holds it) -> parameters, of one GPU by the engine."""
    found: Counter[tuple[str, str, int]] = Counter()
    for each in weights:
        name = "embedding" if each.name == "tied_head" else each.name
        found[str(each.part), name, each.held_by] += each.parameters
    return +found


@QUARTER
@given(deployments())
def test_every_gpu_holds_what_the_oracle_says_and_every_copy_is_explained(scenario: Scenario) -> None:
    """Unit by unit; and each weight counted once, whoever holds it, is the model."""
    oracle, whole = OracleWeights(scenario), engine(scenario)
    held_by, sums = oracle.held_by(), dict.fromkeys(map(str, WeightPart), Fraction(0))
    for rank, units in enumerate(oracle.units):
        expected: Counter[tuple[str, str, int]] = Counter()
        for unit, times in units.items():
            expected[unit[0], unit[1], held_by[unit]] += times * oracle.size[unit]
        held = residency_of(whole, rank)
        computed = whole_weights(whole, held.share)
        assert by_copies(computed) == expected, rank
        for piece, each in zip(held.weights, computed, strict=True):
            assert piece.bytes == -(-each.bytes // piece.pieces)
        if not whole.plan.gathers_weights:
            check_bytes(whole, held)
        for each in computed:
            sums[str(each.part)] += Fraction(each.parameters, each.held_by)
    count = count_parameters(whole.model)
    assert sums == {str(part): count.of(part).total for part in WeightPart}
    assert sum(oracle.size.values()) == count.total


def check_bytes(whole: EngineScenario, held: Residency) -> None:
    """Bytes are parameters and padding in the scenario's dtype, and only vocabulary slices are padded."""
    padded = sum(each.count * each.padding for each in held.weights)
    assert held.weight_bytes == BYTES[whole.dtype.weights] * (held.parameters + padded)
    assert sum(held.weight_bytes_by_part.values()) == held.weight_bytes
    ends = [each for each in held.weights if each.name in ("embedding", "lm_head", "tied_head")]
    assert padded == sum(each.padding for each in ends)
    vocab = whole.model.need("vocab", "test")
    assert all(each.rows in (vocab, -(-vocab // whole.mesh.tp)) for each in ends)


@QUARTER
@given(deployments())
def test_rows_and_kv_of_the_prompt_are_where_it_lands(scenario: Scenario) -> None:
    whole = engine(scenario)
    oracle = OracleMesh(scenario)
    table = landing_table(scenario, oracle)
    tp = oracle.sizes["tp"]
    for rank in range(0, oracle.world, max(1, oracle.world // 8)):
        at, held = oracle.coordinates[rank], residency_of(whole, rank)
        of_share = [position for other in range(tp) for position in table[at["cp"], other]]
        group = inner_group(oracle, rank, sharers_of_heads(scenario.get("mesh", {})))
        sharers = [oracle.coordinates[peer]["cp"] for peer in group]
        kept = [position for cp in sharers for other in range(tp) for position in table[cp, other]]
        own = table[at["cp"], at["tp"]] if whole.plan.sp == "megatron" else of_share
        if not held.share.layers.count:
            of_share, kept = [], []
        assert [p for run in held.kv_positions for p in run] == kept
        assert [p for run in held.rows for p in run] == ([] if whole.decodes else own)
        turns = [other for other in range(tp) if other // whole.plan.dcp == at["tp"] // whole.plan.dcp]
        shards = [residency_of(whole, oracle.rank_with(rank, tp=other)).kv_kept for other in turns]
        assert sum(shards) == len(kept)
        assert held.work.pairs == sum(position + 1 for position in kept)


@QUARTER
@given(deployments())
def test_the_fullest_gpu_is_the_fullest_of_all(scenario: Scenario) -> None:
    whole = engine({**scenario, "cluster": {**scenario.get("cluster", {}), "hardware": "h100"}})
    everyone = [residency_of(whole, rank) for rank in range(whole.mesh.world_size)]
    taken = [held.weight_bytes + held.staging_bytes for held in everyone]
    fits = check_fits(whole)
    assert fits.fullest.weight_bytes + fits.fullest.staging_bytes == max(taken)
    assert taken[fits.fullest.rank] == max(taken)
    for row in fits.stages:
        members = [held for held in everyone if held.share.layers.stage in row.stages]
        assert row.ranks == len(members)
        sizes = [held.weight_bytes for held in members]
        assert (row.fullest.weight_bytes, row.emptiest.weight_bytes) == (max(sizes), min(sizes))
    # A stage that has the embedding or the head alone keeps no K/V, and limits nobody's.
    tokens = min(held.kv_tokens_that_fit or 0 for held in everyone if held.kv_bytes_per_token)
    cp = whole.mesh.cp // sharers_of_heads(scenario.get("mesh", {}))
    assert fits.tokens_a_replica == cp * whole.plan.dcp * tokens
    assert sum(row.ranks for row in fits.stages) == whole.mesh.world_size


# -- figures by hand -------------------------------------------------------------------------------------


def test_kv_of_the_reference_token_is_on_four_gpus() -> None:
    """2·n_kv·d_h·8 elements on GPUs 10, 11, 26 and 27, and nowhere else."""
    scenario = tracer.load_scenario("six-cuts")
    found = {}
    for rank in range(32):
        held = residency_of(scenario, rank)
        in_replica = scenario.mesh.coordinates(rank)["dp"] == 2
        if in_replica and any(40 in run for run in held.kv_positions):
            found[rank] = held.kv_bytes_per_token
    assert set(found) == {10, 11, 26, 27}
    assert sum(found.values()) == 2 * 8 * 128 * 8 * 2
    assert [40 in run for run in residency_of(scenario, 11).rows] == [True]
    assert not any(40 in run for run in residency_of(scenario, 10).rows)


def test_gpu_11_by_hand() -> None:
    held = residency_of(tracer.load_scenario("six-cuts"), 11)
    share = held.share
    assert (share.layers.runs, share.query_heads, share.kv_heads) == (
        (range(1, 5),), range(16, 32), range(4, 8),
    )  # fmt: skip
    hidden, layers = 4096, 4
    attention = layers * (2 * 16 * 128 * hidden + 2 * 4 * 128 * hidden)
    experts = layers * 2 * 3 * hidden * 2048
    others = 128_000 * hidden + layers * 32 * hidden + 2 * layers * hidden
    assert held.parameters == attention + experts + others
    assert held.kv_bytes_per_token == layers * 2 * 4 * 128 * 2


def test_deepseek_prefill_units() -> None:
    """Nine routed experts per GPU, and on TP4 a quarter of the heads but every latent."""
    v3 = model_preset("deepseek-v3")
    by_dp, by_tp = (
        residency_of(tracer.load_scenario(name), 5)
        for name in ("deepseek-v3-prefill-ep32", "deepseek-v3-prefill-ep32-tp4")
    )
    for held in (by_dp, by_tp):
        assert held.weight_bytes_by_part["experts"] == 58 * 9 * expert_bytes(v3)
        assert held.kv_bytes_per_token == 61 * 576 * 2
        assert held.weight_bytes_by_part["dense"] == count_parameters(v3).of("dense").weight_bytes
    names = {each.name: each for each in by_tp.weights if each.part == "attention"}
    assert (names["kv_a"].rows, names["q_a"].rows, names["kv_a"].held_by) == (576, 1536, 32)
    assert (names["q_b"].rows, names["o"].columns, names["o"].held_by) == (128 * 192 // 4, 128 * 128 // 4, 8)
    copies = Counter(each.held_by for each in by_dp.weights if each.part == "experts" and each.name == "up")
    assert copies == {1: 1, 2: 1}  # seven of its experts are held here alone, the copied two twice


def test_a_routed_shared_expert_takes_slots_and_no_place_beside_them() -> None:
    scenario = tracer.load_scenario("deepseek-v3-decode-ep320")
    model = scenario.model
    for rank, parts in ((0, {"experts"}), (256, {"shared"}), (257, {"experts"}), (258, {"shared"})):
        held = residency_of(scenario, rank)
        assert {"experts", "shared"} & set(held.weight_bytes_by_part) == parts
        assert sum(held.weight_bytes_by_part[part] for part in parts) == 58 * expert_bytes(model)
    shared = [residency_of(scenario, rank).weight_bytes_by_part.get("shared", 0) for rank in range(320)]
    assert sum(size > 0 for size in shared) == 32


@pytest.mark.parametrize("etp", [4, 8])
def test_hybrid_slices(etp: int) -> None:
    name = {4: "hybrid-tp4-ep8", 8: "hybrid-tp8-ep4"}[etp]
    held = residency_of(tracer.load_scenario(name), 1)
    assert held.share.expert_hidden == range(2048 // etp, 2 * 2048 // etp)
    up = next(each for each in held.weights if each.part == "experts" and each.name == "up")
    assert (up.rows, up.count, up.held_by) == (2048 // etp, 58 * 256 * etp // 32, 1)
    assert up.why == f"inner width over etp {etp}; held here alone"


def test_kv_heads_on_more_ranks_than_heads() -> None:
    scenario = tracer.load_scenario("qwen3-235b")
    heads = [residency_of(scenario, rank).share.kv_heads for rank in range(8)]
    assert heads == [range(rank // 2, rank // 2 + 1) for rank in range(8)]
    k = next(each for each in residency_of(scenario, 0).weights if each.name == "k")
    assert (k.rows, k.held_by) == (128, 4)
    assert "more than KV heads" in k.why


def test_staging_buffers_are_two_layers_of_what_a_token_pulls() -> None:
    scenario = tracer.load_scenario("gpt-oss-120b-dwdp4")
    one_layer = take_trip(scenario).log.weight_bytes // 36
    held = residency_of(scenario, 2)
    assert held.staging_bytes == 2 * one_layer == 2 * 96 * expert_bytes(model_preset("gpt-oss-120b"))
    assert residency_of(tracer.load_scenario("gpt-oss-120b-dep4"), 2).staging_bytes == 0


def test_pulled_experts_are_as_large_as_the_model_stores_them() -> None:
    mxfp4 = 3 * 2880 * (2880 // 2 + 2880 // 32)
    assert take_trip(tracer.load_scenario("gpt-oss-120b-dwdp4")).log.weight_bytes == 36 * 96 * mxfp4
    tables = tracer.load_scenario("gpt-oss-120b-dwdp4").to_dict()
    tables["model"] |= {"expert_weights": None, "weights": None}
    tables["dtype"]["weights"] = "fp8"
    plain = EngineScenario.from_dict(tables)
    assert take_trip(plain).log.weight_bytes == 36 * 96 * 3 * 2880 * 2880


def test_tied_ends() -> None:
    """One stage keeps one matrix; over several the last has a slice of its own."""
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["model"]["tie_embeddings"] = True
    held = [residency_of(EngineScenario.from_dict(tables), rank) for rank in (11, 27)]
    assert [[each.name for each in one.weights if each.part == "embedding"] for one in held] == [
        ["embedding"], ["tied_head"],
    ]  # fmt: skip
    embedding, head = (next(each for each in one.weights if each.part == "embedding") for one in held)
    assert embedding.held_by == head.held_by == 16 + 8
    assert (embedding.why, head.why) == (
        "whole; the same on tp 2 × cp 2 × dp 4; tied: 8 more on stage 1",
        "vocabulary over tp 2; the same on cp 2 × dp 4; tied: 16 more on stage 0",
    )


def test_layers_of_uneven_stages_and_tables_of_their_own() -> None:
    fits = check_fits(tracer.load_scenario("llama-3.1-405b"))
    assert [row.fullest.share.layers.count for row in fits.stages] == [32, 32, 31, 31]
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["placement"]["slots_by_layer"] = {"6": [*range(32), *range(16)]}
    held = residency_of(EngineScenario.from_dict(tables), 27).to_dict()["experts"]
    assert held == {"hidden": [0, 2048], "slots": [22, 23], "by_layer": {"6": [1, 2, 3]}} or held[
        "by_layer"
    ] == {"6": [(3 * 11 + place) % 32 for place in range(3)]}


# -- sizes and reports -----------------------------------------------------------------------------------


def test_a_mesh_of_a_billion_ranks_is_classes_not_ranks() -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["mesh"] |= {"dp": 1 << 27, "edp": None, "ep": 16}
    tables["cluster"] |= {"nodes": None}
    scenario = EngineScenario.from_dict(tables)
    start = time.process_time()  # a loop over ranks would take hours
    fits = check_fits(scenario)
    text = rank_text(scenario, scenario.mesh.world_size - 1)
    assert time.process_time() - start < 60
    assert (scenario.mesh.world_size, fits.fullest.rank) == (1 << 30, 0)
    assert [row.ranks for row in fits.stages] == [1 << 29, 1 << 29]
    assert "layers        5 to 8" in text


def test_very_many_experts_and_stages_are_not_written_out() -> None:
    tables = {
        "cluster": {"hardware": "h100"},
        "model": {"layers": 4_096, "hidden": 8, "heads": 1, "head_dim": 8, "vocab": 10}
        | {"experts": 32_768, "top_k": 1, "expert_hidden": 128_000},
        "mesh": {"pp": 2_048, "dp": 2, "ep": 2},
    }
    fits = check_fits(EngineScenario.from_dict(tables))
    assert not fits.ok
    assert [row["stages"] for row in fits.to_dict()["stages"]] == [
        [[0, 0]],
        [[1, 2_046]],
        [[2_047, 2_047]],
    ]
    assert "1 to 2046" in str(fits)
    assert "DOES NOT FIT" in str(fits)
    slots = residency_of(fits.scenario, 0).to_dict()["experts"]["slots"]
    assert slots == {"count": 16_384, "first": list(range(12))}


def schema(name: str) -> dict[str, Any]:
    text = (resources.files("tracer") / "data" / "schemas" / f"{name}.schema.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.mark.parametrize("name", tracer.preset_names())
def test_reports_follow_their_schemas(name: str) -> None:
    scenario = tracer.load_scenario(name)
    jsonschema.validate(rank_report(scenario, scenario.mesh.world_size - 1), schema("rank"))
    jsonschema.validate(check_fits(scenario).to_dict(), schema("fits"))


@QUARTER
@given(deployments())
def test_reports_of_drawn_scenarios_follow_their_schemas(scenario: Scenario) -> None:
    whole = engine(scenario)
    report = rank_report(whole, whole.mesh.world_size - 1)
    assert report["holds_missing"] is None
    jsonschema.validate(report, schema("rank"))
    assert json.loads(json.dumps(report)) == report
    assert rank_text(whole, 0)


@pytest.mark.parametrize("name", tracer.preset_names())
def test_presets_fit_their_hardware(name: str) -> None:
    fits = check_fits(tracer.load_scenario(name), usable=0.9)
    assert fits.ok
    assert fits.tokens_a_replica >= fits.scenario.token.prompt


def test_what_cannot_be_said_is_said() -> None:
    groups_only = BareScenario.from_dict({"mesh": {"tp": 2}})
    report = rank_report(groups_only, 1)
    assert (report["holds"], report["groups"]["tp"]) == (None, [0, 1])
    assert report["holds_missing"].startswith("model is not given and is needed")
    no_vocab = EngineScenario.from_dict({"model": {"layers": 2, "hidden": 8, "heads": 2, "dense_hidden": 8}})
    assert "holds\n    not known: model.vocab is not given and is needed" in rank_text(no_vocab, 0)
    jsonschema.validate(rank_report(no_vocab, 0), schema("rank"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hardware": None}, r"cluster\.hardware is not given and is needed to say what fits"),
        (
            {"hardware": None, "bf16_flops": 1e15},
            r"cluster\.hbm_bytes is not given and is needed to say what fits, and no source was seen",
        ),
    ],
)
def test_fits_needs_the_memory(changes: dict[str, Any], message: str) -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["cluster"] |= changes
    scenario = EngineScenario.from_dict(tables)
    with pytest.raises(tracer.ConfigError, match=message):
        check_fits(scenario)
    held = residency_of(scenario, 3)
    assert (held.hbm_bytes, held.free_bytes, held.kv_tokens_that_fit) == (None, None, None)
    assert "memory        not known" in str(held)


@pytest.mark.parametrize("usable", [0, -1, 1.01, float("nan")])
def test_usable_is_a_part_of_the_memory(usable: float) -> None:
    with pytest.raises(tracer.ConfigError, match=r"usable=.* must be a part of the memory"):
        check_fits(tracer.load_scenario("six-cuts"), usable)
