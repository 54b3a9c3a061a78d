"""Figures of "One token, 32 GPUs, six parallelisms"."""

from __future__ import annotations

import numpy as np

from tracer.mesh.axes import Axis
from tracer.proof.ledger.line import Check, LedgerLine, Verdict, near
from tracer.scenario.files import load_scenario
from tracer.traffic.chance import HitChance
from tracer.traffic.orders import with_order
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip

SOURCE = "One token, 32 GPUs, six parallelisms"
LOG = {
    "L1 all_gather": (2, 0, 1),
    "L1 reduce_scatter": (4, 0, 3),
    "L1 combine": (7, 2, 5),
    "L4 combine": (11, 6, 20),
    "L4 pp_send": (12, 7, 21),
    "L8 combine": (23, 15, 41),
}


def groups() -> LedgerLine:
    """Partners of GPU 11."""
    mesh = load_scenario("six-cuts").mesh
    found = {axis: list(mesh.group(11, axis)) for axis in ("tp", "cp", "dp", "ep", "pp", "replica")}
    pairs = [list(mesh.group(rank, Axis.CP)) for rank in (11, 10, 27, 26)]
    holds = (
        found["tp"] == [10, 11]
        and pairs == [[9, 11], [8, 10], [25, 27], [24, 26]]
        and found["ep"] == list(range(16))
        and found["pp"] == [11, 27]
        and found["replica"] == [8, 9, 10, 11]
    )
    return LedgerLine(
        SOURCE,
        "groups of GPU 11: cp 11↔9 10↔8, tp 10, ep 0–15, pp 27; stage 1 twins",
        Verdict.REPRODUCES,
        f"tp {found['tp']}, cp {pairs[0]}, ep 0–15, pp {found['pp']}",
        holds,
        f'its "DP" row is the replica {found["replica"]}; the dp group proper is {found["dp"]}',
    )


def trip_logs() -> LedgerLine:
    """The six trip logs."""
    trip = take_trip(load_scenario("six-cuts"))
    after = {
        f"L{hop.layer} {hop.kind}": (tally.gpus_touched, tally.node_crossings, tally.comm_ops)
        for hop, tally in zip(trip.hops, trip.tallies, strict=True)
    }
    found = [after[name] for name in LOG]
    text = " · ".join("/".join(map(str, entry)) for entry in found)
    return LedgerLine(
        SOURCE,
        "trip logs 2/0/1 · 4/0/3 · 7/2/5 · 11/6/20 · 12/7/21 · 23/15/41 (GPUs/crossings/ops)",
        Verdict.REPRODUCES,
        text,
        found == list(LOG.values()),
    )


def zigzag_line() -> LedgerLine:
    """Causal work of the chunks, and of a rank's two."""
    landing = load_scenario("six-cuts").landing
    half = landing.padded // (2 * landing.cp)
    cost = [(2 * chunk + 1) for chunk in range(2 * landing.cp)]
    ranks = [
        sum(
            cost[run.start // half] * len(run) / half
            for tp in range(landing.tp)
            for run in landing.positions_on(cp, tp)
        )
        for cp in range(landing.cp)
    ]
    return LedgerLine(
        SOURCE,
        "zigzag chunk costs 1, 3, 5, 7 → 8 a rank",
        Verdict.REPRODUCES,
        f"chunks {cost}, ranks {ranks}",
        cost == [1, 3, 5, 7] and ranks == [8.0, 8.0],
    )


def merge_of_partials() -> LedgerLine:
    """Two partial attentions with m and ℓ against one softmax."""
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(4, 64)), rng.normal(size=(64, 8))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    whole = weights @ values / weights.sum(1, keepdims=True)
    parts = []
    for cut in (slice(0, 20), slice(20, 64)):
        peak = scores[:, cut].max(1, keepdims=True)
        raised = np.exp(scores[:, cut] - peak)
        total = raised.sum(1, keepdims=True)
        parts.append((raised @ values[cut] / total, peak, total))
    peak = np.maximum(parts[0][1], parts[1][1])
    scale = [np.exp(m - peak) * total for _, m, total in parts]
    merged = (scale[0] * parts[0][0] + scale[1] * parts[1][0]) / (scale[0] + scale[1])
    error = float(np.abs(merged - whole).max())
    return LedgerLine(
        SOURCE,
        "merge of partial attentions with m, ℓ",
        Verdict.REPRODUCES,
        f"largest difference from one softmax {error:.1e}",
        error < 1e-12,
    )


def ib_share() -> LedgerLine:
    """EP over IB, and with pp and dp swapped."""
    scenario = load_scenario("six-cuts")
    td = scenario.landing.padded * scenario.model.need("hidden", "size a row")
    values = []
    for order in ("tp-cp-dp-pp", "tp-cp-pp-dp"):
        line = comm_volume(with_order(scenario, order)).axis("ep")
        values.append(line.ib_elements / td if line is not None else 0.0)
    chance = HitChance(32, 2).of_count(16)
    return LedgerLine(
        SOURCE,
        "1 − (16/32)(15/31) ≈ 76 %; EP over IB ≈ 0.38·Td; swapped pp/dp 0.67·Td",
        Verdict.REPRODUCES,
        f"{chance:.4f}; {values[0]:.4f}·Td; {values[1]:.4f}·Td",
        near(chance, 0.76, 2) and near(values[0], 0.38, 2) and near(values[1], 0.67, 2),
    )


def relative_times() -> LedgerLine:
    """EP, PP and CP against TP's time."""
    traffic = comm_volume(load_scenario("six-cuts"))
    data = traffic.to_dict()["axes"]
    ep, cp = data["ep"]["ratio_to_tp"], data["cp"]["ratio_to_tp"]
    layer, send = data["pp"]["ratio_to_tp_per_layer"], data["pp"]["ratio_to_tp_per_send"]
    model = traffic.scenario.model
    group = (model.heads or 0) / (model.kv_heads or 1)
    return LedgerLine(
        SOURCE,
        "EP ≈ 7×, PP ≈ 1.1× a layer and 4.5× a send, CP 1/g of TP's time",
        Verdict.REPRODUCES,
        f"EP {ep:.2f}, PP {layer:.3f} and {send:.2f}, CP 1/{1 / cp:g}",
        near(ep, 7, 1) and near(layer, 1.1, 2) and near(send, 4.5, 2) and abs(cp - 1 / group) < 1e-12,
    )


def kv_left() -> LedgerLine:
    """What the token leaves behind."""
    scenario = load_scenario("six-cuts")
    model, trip = scenario.model, take_trip(scenario)
    each = model.kv_values_per_token * model.layers
    holders = sorted(
        {rank for hop in trip.hops if hop.kind is HopKind.ALL_GATHER for t in hop.transfers for rank in t[:2]}
    )
    return LedgerLine(
        SOURCE,
        "K/V left: 2·n_kv·d_h·8 elements on GPUs 10, 11, 26, 27",
        Verdict.REPRODUCES,
        f"{each:,} elements on GPUs {', '.join(map(str, holders))}",
        each == 2 * (model.kv_heads or 0) * (model.head_dim or 0) * 8 and holders == [10, 11, 26, 27],
    )


def dead_work_line() -> LedgerLine:
    """Layer 8 of a token that is not T-1."""
    trip = take_trip(load_scenario("six-cuts"))
    dead = sum(hop.crossings for hop in trip.hops if hop.dead)
    live = [str(hop.kind) for hop in trip.hops if hop.layer == 8 and not hop.dead]
    return LedgerLine(
        SOURCE,
        "layer-8 attention and MoE of this token are dead work, 2 of 15 crossings",
        Verdict.REPRODUCES,
        f"{dead} of {trip.log.node_crossings} crossings; {' and '.join(live)} stay live",
        dead == 2 and live == ["all_gather", "kv_exchange"],
    )


def lm_head_line() -> LedgerLine:
    """Which position reaches the LM head, and where."""
    scenario = load_scenario("six-cuts")
    last = take_trip(scenario.with_token(replica=2, position=63))
    heads = [hop for hop in last.hops if hop.part == "lm_head"]
    ranks = sorted({rank for hop in heads for t in hop.transfers for rank in t[:2]})
    others = any(hop.part == "lm_head" for hop in take_trip(scenario).hops)
    return LedgerLine(
        SOURCE,
        "only T−1 on GPU 25 feeds the LM head, with GPU 24",
        Verdict.REPRODUCES,
        f"T−1 ends on GPUs {ranks}; position 40 {'does' if others else 'does not'}",
        ranks == [24, 25] and not others,
    )


CHECKS: tuple[Check, ...] = (
    groups,
    trip_logs,
    zigzag_line,
    merge_of_partials,
    ib_share,
    relative_times,
    kv_left,
    dead_work_line,
    lm_head_line,
)
