"""Replay can fail: known mistakes, a transfer that is lost, and one that goes astray."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replay_cases import MOE, deployment

import tracer
from tracer.proof.replay import Fault, faults_of, replay
from tracer.proof.replay.walk import Halt, RowItineraries
from tracer.trip.hop import HopKind

SIX_CUTS = tracer.load_scenario("six-cuts")
BIASED = {**MOE, "router": "sigmoid_bias_topk"}
V3 = tracer.load_scenario("deepseek-v3-prefill-ep32")

SMALL = deployment(BIASED, {"tp": 2, "cp": 2, "dp": 2, "pp": 3, "ep": 8})
SPLIT = deployment(MOE, {"tp": 2, "dp": 2, "ep": 4, "sp": "before_dispatch"})

CAUGHT = [
    (SMALL, Fault.ROPE_LOCAL, "layer 1 attention: replica 0, position 48 on GPU 1 is off by"),
    (SMALL, Fault.MERGE_UNWEIGHTED, "layer 1 attention: replica 0, position 0 on GPU 0 is off by"),
    (SMALL, Fault.MASK_CONTIGUOUS, "layer 1 attention: replica 0, position 48 on GPU 1 is off by"),
    (SMALL, Fault.DISPATCH_TWICE, "layer 1 all_gather (moe), replica 0, position 0: not in the trip: 0 → 1"),
    (SMALL, Fault.BIAS_IN_WEIGHTS, "layer 1 router weights: replica 0, position 0 on GPU 0 is off by"),
    (V3, Fault.BIAS_IN_WEIGHTS, "layer 2 router weights: replica 0, position 0 on GPU 0 is off by"),
    (SPLIT, Fault.DISPATCH_TWICE, "layer 1 dispatch (moe), replica 0, position 0: not in the trip: 1 →"),
    (SIX_CUTS, Fault.ROPE_LOCAL, "layer 1 attention: replica 0, position 48 on GPU 1 is off by"),
]


@pytest.mark.parametrize(("scenario", "fault", "first"), CAUGHT)
def test_fault_is_caught_and_placed(scenario: tracer.Scenario, fault: Fault, first: str) -> None:
    report = replay(scenario, fault=fault)
    assert not report.ok
    assert report.first_difference is not None
    assert report.first_difference.startswith(first)
    assert replay(scenario).ok, "and without the fault nothing differs"


def test_every_fault_is_caught_somewhere() -> None:
    assert {fault for _, fault, _ in CAUGHT} == set(Fault)


def test_dispatching_twice_moves_twice_the_copies() -> None:
    report = replay(SMALL, fault="dispatch_twice")
    assert not report.equal, "the sum over TP then counts every expert twice"
    assert not report.transfers_equal
    assert report.bytes_moved > 1.5 * report.bytes_logged


def test_wrong_numbers_leave_the_transfers_alone() -> None:
    report = replay(SMALL, fault="merge_unweighted")
    assert report.transfers_equal
    assert report.bytes_moved == report.bytes_logged
    assert not report.equal


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rope_locale", "fault='rope_locale' must be .*; did you mean 'rope_local'"),
        ("bias_in_weights", "cannot show here: gate weights .* it needs a router with a bias"),
    ],
)
def test_refuses_a_fault_that_cannot_show(name: str, message: str) -> None:
    with pytest.raises(tracer.ConfigError, match=message):
        replay(SIX_CUTS, fault=name)


def test_lists_the_faults_that_can_show() -> None:
    assert set(faults_of(SIX_CUTS)) == set(Fault) - {Fault.BIAS_IN_WEIGHTS}
    assert faults_of(V3) == (Fault.BIAS_IN_WEIGHTS,)
    contiguous = SIX_CUTS.with_(plan=replace(SIX_CUTS.plan, landing="contiguous"))
    assert Fault.MASK_CONTIGUOUS not in faults_of(contiguous)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (HopKind.ALL_GATHER, "layer 1 all_gather (attention), replica 0, position 0: never sent: 0 → 1"),
        (HopKind.KV_EXCHANGE, "layer 1 kv_exchange (attention), replica 0, position 0: never sent: 0 → 2"),
        (
            HopKind.REDUCE_SCATTER,
            "layer 1 reduce_scatter (attention), replica 0, position 0: never sent: 1 → 0",
        ),
        (HopKind.PP_SEND, "layer 1 pp_send (pipeline), replica 0, position 0: never sent: 0 → 8"),
        (
            HopKind.LOGITS_GATHER,
            "layer 3 logits_gather (lm_head), replica 0, position 63: never sent: 16 → 17",
        ),
    ],
)
def test_a_lost_transfer(monkeypatch: pytest.MonkeyPatch, kind: HopKind, told: str) -> None:
    """Nothing else brings a row: without the send its reader has none, or a wrong sum."""
    whole = RowItineraries.transfers

    def lossy(self: RowItineraries, halt: Halt) -> tuple[tracer.Transfer, ...]:
        return () if halt.kind is kind else whole(self, halt)

    monkeypatch.setattr(RowItineraries, "transfers", lossy)
    report = replay(SMALL)
    assert not report.ok
    assert not report.equal
    assert not report.transfers_equal
    assert report.first_difference is not None
    assert report.first_difference.startswith(told)


def test_a_transfer_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """K/V sent to the wrong TP rank: other heads' K/V under the same tokens."""
    whole = RowItineraries.transfers

    def astray(self: RowItineraries, halt: Halt) -> tuple[tracer.Transfer, ...]:
        moves = whole(self, halt)
        if halt.kind is not HopKind.KV_EXCHANGE:
            return moves
        return tuple(move._replace(dst=move.dst ^ 1) for move in moves)

    monkeypatch.setattr(RowItineraries, "transfers", astray)
    report = replay(SMALL)
    assert not report.ok
    assert not report.equal
    assert report.first_difference is not None
    assert report.first_difference.startswith("layer 1 kv_exchange (attention), replica 0, position 0: never")
