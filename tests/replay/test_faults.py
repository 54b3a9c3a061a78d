"""Replay can fail: known mistakes, a transfer that is lost, and one that goes astray."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replay_cases import MOE, deployment

import tracer
from tracer.hop import HopKind
from tracer.replay import Fault, faults_of, replay
from tracer.replay.walk import Halt, Walk

SIX_CUTS = tracer.load_scenario("six-cuts")
BIASED = {**MOE, "router": "sigmoid_bias_topk"}
V3 = tracer.load_scenario("deepseek-v3-prefill-ep32")

CAUGHT = [
    (SIX_CUTS, Fault.ROPE_LOCAL, "layer 1 attention: replica 0, position 48 on GPU 1 is off by"),
    (SIX_CUTS, Fault.MERGE_UNWEIGHTED, "layer 1 attention: replica 0, position 0 on GPU 0 is off by"),
    (SIX_CUTS, Fault.MASK_CONTIGUOUS, "layer 1 attention: replica 0, position 48 on GPU 1 is off by"),
    (
        SIX_CUTS,
        Fault.DISPATCH_TWICE,
        "layer 1 all_gather (moe), replica 0, position 0: not in the trip: 0 → 1",
    ),
    (V3, Fault.BIAS_IN_WEIGHTS, "layer 2 router weights: replica 0, position 0 on GPU 0 is off by"),
    (deployment(BIASED, {"tp": 2, "ep": 2}), Fault.BIAS_IN_WEIGHTS, "layer 1 router weights: replica 0"),
    (
        deployment(MOE, {"tp": 2, "dp": 2, "ep": 4, "sp": "before_dispatch"}),
        Fault.DISPATCH_TWICE,
        "layer 1 dispatch (moe), replica 0, position 0: not in the trip: 1 →",
    ),
]


@pytest.mark.parametrize(("scenario", "fault", "first"), CAUGHT, ids=lambda value: str(value)[:16])
def test_fault_is_caught_and_placed(scenario: tracer.Scenario, fault: Fault, first: str) -> None:
    assert replay(scenario).ok
    report = replay(scenario, fault=fault)
    assert not report.ok
    assert report.first_difference is not None
    assert report.first_difference.startswith(first)


def test_every_fault_is_caught_somewhere() -> None:
    assert {fault for _, fault, _ in CAUGHT} == set(Fault)


def test_dispatching_twice_moves_twice_the_copies() -> None:
    report = replay(SIX_CUTS, fault="dispatch_twice")
    assert not report.equal, "the sum over TP then counts every expert twice"
    assert not report.transfers_equal
    assert report.bytes_moved > 1.5 * report.bytes_logged


def test_wrong_numbers_leave_the_transfers_alone() -> None:
    report = replay(SIX_CUTS, fault="merge_unweighted")
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
    contiguous = replace(SIX_CUTS, plan=replace(SIX_CUTS.plan, landing="contiguous"))
    assert Fault.MASK_CONTIGUOUS not in faults_of(contiguous)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (HopKind.ALL_GATHER, "layer 1 attention: replica 0, position 1 on GPU 0"),
        (
            HopKind.REDUCE_SCATTER,
            "layer 1 reduce_scatter (attention), replica 0, position 0: never sent: 1 → 0",
        ),
        (HopKind.PP_SEND, "GPU 16 holds no hidden"),
    ],
)
def test_a_lost_transfer(monkeypatch: pytest.MonkeyPatch, kind: HopKind, told: str) -> None:
    """Nothing else brings a row: without the send its reader has no row, or a wrong one."""
    whole = Walk.transfers

    def lossy(self: Walk, halt: Halt) -> tuple[tracer.Transfer, ...]:
        return () if halt.kind is kind else whole(self, halt)

    monkeypatch.setattr(Walk, "transfers", lossy)
    report = replay(SIX_CUTS)
    assert not report.ok
    assert not report.transfers_equal
    print(report.first_difference)


def test_a_transfer_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """K/V sent to the wrong CP rank."""
    whole = Walk.transfers

    def astray(self: Walk, halt: Halt) -> tuple[tracer.Transfer, ...]:
        moves = whole(self, halt)
        if halt.kind is not HopKind.KV_EXCHANGE:
            return moves
        return tuple(move._replace(dst=move.dst ^ 1) for move in moves)

    monkeypatch.setattr(Walk, "transfers", astray)
    report = replay(SIX_CUTS)
    assert not report.ok
    assert report.first_difference is not None
    assert "kv_exchange" in report.first_difference or "GPU" in report.first_difference
