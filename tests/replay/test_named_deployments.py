"""The mesh equals one device, and moves what the trips say, on the deployments that people name."""

from __future__ import annotations

import pytest
from replay_cases import NAMED

from tracer.proof.replay import ReplayReport, replay


@pytest.fixture(scope="module")
def reports() -> dict[str, ReplayReport]:
    return {name: replay(scenario) for name, scenario in NAMED.items()}


@pytest.mark.parametrize("name", NAMED)
def test_equals_one_device(reports: dict[str, ReplayReport], name: str) -> None:
    report = reports[name]
    assert report.max_abs_error <= 1e-9
    prompt, replicas = report.scenario.token.prompt, report.scenario.mesh.dp
    assert report.tokens_checked == prompt * replicas


@pytest.mark.parametrize("name", NAMED)
def test_moves_what_the_trips_say(reports: dict[str, ReplayReport], name: str) -> None:
    """For every token the very transfers, for all rows together the bytes, padding included."""
    report = reports[name]
    assert report.first_difference is None
    assert report.transfers_equal
    assert report.bytes_moved == report.bytes_logged > 0


@pytest.mark.parametrize("name", NAMED)
def test_agrees_with_the_closed_forms(reports: dict[str, ReplayReport], name: str) -> None:
    forms = reports[name].closed_forms
    assert forms
    assert [form.to_dict() for form in forms if not form.holds] == []


def test_elements_of_six_cuts_are_the_published_ones(reports: dict[str, ReplayReport]) -> None:
    """Td/2 over tp, Td/(2g) over cp, Td/4 a stage boundary, for each GPU; Td over ep by picks."""
    from dataclasses import replace

    report = reports["six-cuts"]
    tokens, width, share = 64, report.scenario.model.need("hidden", "test"), 4
    sent = {(form.layer, form.axis): form.sent for form in report.closed_forms}
    assert set(sent[3, "tp"]) == {tokens * width // 2}
    assert set(sent[3, "cp"]) == {tokens * width // (2 * share)}
    assert set(sent[4, "pp"]) == {tokens * width // 4}
    plan = replace(NAMED["six-cuts"].plan, dispatch="low_latency")
    forms = replay(NAMED["six-cuts"].with_(plan=plan)).closed_forms
    (form,) = [form for form in forms if (form.layer, form.axis) == (3, "ep")]
    assert sum(form.sent) + form.kept == 16 * tokens * width


def test_keeps_the_mesh_and_the_kinds_of_layers() -> None:
    """A tiny scenario cuts and counts as the one it stands for."""
    from tracer.proof.replay.tiny import shrink

    for scenario in NAMED.values():
        small, model, whole = shrink(scenario), shrink(scenario).model, scenario.model
        assert (small.mesh, small.cluster, small.placement) == (
            scenario.mesh, scenario.cluster, scenario.placement,
        )  # fmt: skip
        assert (model.experts, model.top_k, model.router) == (whole.experts, whole.top_k, whole.router)
        assert (model.moe_layers > 0) == (whole.moe_layers > 0)
        assert (model.moe_layers < model.layers) == (whole.moe_layers < whole.layers)
        assert small.home == scenario.home


def test_the_reference_trip_is_the_one_replayed() -> None:
    """Picks that the scenario gives stand: the followed token's trip is the published one."""
    from tracer.proof.replay import look
    from tracer.trip.trip import take_trip

    followed = look(NAMED["six-cuts"]).scenario
    assert followed.picks == NAMED["six-cuts"].picks
    log = take_trip(followed).log
    assert (log.gpus_touched, log.node_crossings, log.comm_ops) == (23, 15, 41)


def test_memory_of_six_cuts(reports: dict[str, ReplayReport]) -> None:
    """All arrays of all 32 GPUs, weights and rows, at their most."""
    assert reports["six-cuts"].memory_bytes < 8 * 2**20
