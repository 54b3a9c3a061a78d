"""The layout is recovered from groups and shapes, with names and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runs.made import DATA, dump, write
from tracer.frameworks.opening import from_flags
from tracer.runs.families import family_of
from tracer.runs.layout import RecoveredLayout, recover
from tracer.runs.reading.files import read_run
from tracer.runs.reading.recording import Group, Op, RankRecord, Recording
from tracer.runs.scenario import to_scenario
from tracer.runs.structure import steps_of
from tracer.scenario.scenario import BareScenario, Scenario

TRUTH = {
    "megatron-a": {"tp": 2, "cp": 1, "dp": 2, "pp": 4, "ep": 4, "etp": 1, "edp": 1, "rows": 4096},
    "megatron-b": {"tp": 4, "cp": 1, "dp": 2, "pp": 2, "ep": 8, "etp": 1, "edp": 1, "rows": 2048},
}
MODEL = {
    "hidden": 5120,
    "experts": 16,
    "top_k": 1,
    "shared_expert": True,
    "fp8_gather": True,
    "row_dtype": "bf16",
}


def without_names(run: Recording) -> Recording:
    """The same recording, its groups without a description."""
    plain = {group: replace(group, description="") for group in run.groups}

    def nameless(record: RankRecord) -> RankRecord:
        ops = tuple(replace(op, group=plain[op.group]) for op in record.ops)
        progress = {plain[group]: each for group, each in record.progress.items()}
        groups = tuple(plain[group] for group in record.groups)
        return replace(record, groups=groups, progress=progress, load=lambda: ops)

    return Recording({rank: nameless(record) for rank, record in run.ranks.items()}, run.world_size)


def holds(layout: RecoveredLayout, truth: dict[str, object]) -> None:
    told = layout.to_dict()
    assert {key: told[key] for key in truth} == truth
    assert told["order"] == "tp-cp-dp-pp"


@pytest.mark.parametrize("name", TRUTH)
def test_real_runs_with_their_names(name: str) -> None:
    layout = recover(read_run([DATA / name]))
    holds(layout, TRUTH[name] | MODEL)
    assert layout.names_groups and not {"tp", "dp", "pp", "ep"} & set(layout.guessed)


@pytest.mark.parametrize("name", TRUTH)
def test_real_runs_by_spacing_and_operations_alone(name: str) -> None:
    layout = recover(without_names(read_run([DATA / name])))
    holds(layout, TRUTH[name] | MODEL)
    assert not layout.names_groups and {"tp", "dp", "pp", "ep"} <= set(layout.guessed)


@pytest.mark.parametrize("name", TRUTH)
def test_eleven_families_are_those_that_megatron_makes(name: str) -> None:
    run = read_run([DATA / name])
    size = recover(run).sizes
    flags = (
        f"--tensor-model-parallel-size {size['tp']} --pipeline-model-parallel-size {size['pp']} "
        f"--expert-model-parallel-size {size['ep']} --expert-tensor-parallel-size {size['etp']}"
    )
    made = from_flags("megatron", flags, gpus=16).framework_groups
    recorded: dict[str, set[tuple[int, ...]]] = {}
    for group in run.groups:
        family = family_of(group.description)
        if family is not None:
            recorded.setdefault(family, set()).add(group.members)
    compared = recorded.keys() & made.keys()
    assert len(compared) == 11
    for family in compared:
        listed = {tuple(group) for group in made[family]}
        # An embedding group is recorded by the ranks in it alone, so not every pipeline's need be there.
        assert recorded[family] <= listed and (family == "embd" or recorded[family] == listed), family


def test_virtual_stages_are_counted_where_a_pipeline_has_inner_stages() -> None:
    a, b = (recover(read_run([DATA / name])) for name in TRUTH)
    assert (a.chunks, a.layers) == (4, 16) and "chunks" in a.guessed
    assert b.chunks is None and any("pp = 2" in note for note in b.notes)


@pytest.mark.parametrize("name", TRUTH)
def test_the_scenario_is_written_and_read_back(name: str) -> None:
    scenario, assumed = to_scenario(recover(read_run([DATA / name])))
    assert BareScenario.from_toml(scenario.to_toml()) == scenario
    assert isinstance(scenario, Scenario) and (scenario.model.experts, scenario.model.top_k) == (16, 1)
    assert scenario.landing.tokens_per_rank == TRUTH[name]["rows"]
    assert {"heads", "vocab"} <= set(assumed)


@pytest.mark.parametrize(
    ("order", "sizes"),
    [
        ("tp-cp-dp-pp", (2, 2, 3, 2)),
        ("tp-dp-pp", (4, 2, 2)),
        ("tp-pp-dp", (2, 2, 2)),
        ("pp-tp-dp", (2, 3, 2)),
    ],
)
@pytest.mark.parametrize("word", ["mesh_{}", "{}:0", "{}"])
def test_orders_are_recovered_from_named_groups(order: str, sizes: tuple[int, ...], word: str) -> None:
    from tracer.mesh.mesh import Mesh

    axes = dict(zip(order.split("-"), sizes, strict=True))
    whole = order if "cp" in axes else order.replace("tp", "tp-cp", 1)
    mesh = Mesh.build(whole, **axes)  # type: ignore[arg-type]
    groups = {}
    for axis in axes:
        for row in mesh.groups(axis).tolist():
            groups[Group(f"{axis}{row[0]}", word.format(axis), tuple(row))] = row

    def record(rank: int) -> RankRecord:
        from tracer.runs.reading.recording import Source

        own = tuple(group for group, row in groups.items() if rank in row)
        return RankRecord(rank, "x", Source.FLIGHT_RECORDER, own, {}, tuple)

    layout = recover(Recording({rank: record(rank) for rank in range(mesh.world_size)}, mesh.world_size))
    assert {axis: layout.sizes[axis] for axis in axes} == axes
    large = [axis for axis in layout.order.split("-") if layout.sizes[axis] > 1]
    assert large == [axis for axis in whole.split("-") if axes.get(axis, 1) > 1]
    assert layout.mesh is not None


def test_sizes_that_do_not_multiply_up_are_said(tmp_path: Path) -> None:
    groups = {"1": ("mesh_tp", [0, 1, 2]), "2": ("mesh_pp", [0, 3])}
    folder = write(tmp_path / "run", {0: dump(groups, [], {}), 3: dump({"2": groups["2"]}, [], {})})
    layout = recover(read_run([folder]))
    assert layout.mesh is None
    assert any("do not multiply" in note for note in layout.notes)


@pytest.mark.parametrize(
    ("members", "steps"),
    [
        ((0, 1, 2), ((3, 1),)),
        ((5,), ()),
        ((0, 1, 8, 9, 16, 17), ((2, 1), (3, 8))),
        ((3, 1, 2, 0), ((4, 1),)),
        ((0, 2, 3), None),
        ((0, 1, 4, 6), None),
    ],
)
def test_lattices(members: tuple[int, ...], steps: object) -> None:
    assert steps_of(members) == steps


def test_nodes_come_from_hosts() -> None:
    run = read_run([DATA / "gloo-whole"])
    ranks = {rank: replace(each, host=f"node-{rank // 2}") for rank, each in run.ranks.items()}
    layout = recover(Recording(ranks, 4))
    assert (layout.nodes, layout.gpus_per_node) == (2, 2)
    mixed = {rank: replace(each, host=f"node-{rank % 2}") for rank, each in run.ranks.items()}
    layout = recover(Recording(mixed, 4))
    assert layout.nodes is None and any("node by node" in note for note in layout.notes)


def test_operations_of_a_recording_are_kept_as_they_were() -> None:
    run = read_run([DATA / "gloo-whole"])
    assert all(isinstance(op, Op) for record in run.ranks.values() for op in record.ops)


def test_a_shared_expert_before_the_router_makes_the_pairs_even(tmp_path: Path) -> None:
    """Gather and sum of attention, of the shared expert, then counts, dispatch and combine; two layers."""
    from tests.runs.made import Op as Made
    from tests.runs.made import dump, write
    from tracer.runs.diff import Status
    from tracer.runs.report import examine_files

    groups = {"1": ("mesh_tp", [0, 1]), "2": ("mesh_ep", [0, 1])}
    gather: Made = ("1", "_all_gather_base", [8, 64], [16, 64])
    total: Made = ("1", "_reduce_scatter_base", [16, 64], [8, 64])
    rows: Made = ("2", "all_to_all", [8, 64], [8, 64])
    counts: Made = ("2", "_all_gather_base", [4], [8])

    def layer(pairs: int) -> list[Made]:
        return [*[gather, total] * pairs, counts, rows, rows]

    def examined(name: str, *pairs: int) -> Any:
        ops = [
            (op, {"input_dtypes": ["Long"]} if op is counts else {}) for each in pairs for op in layer(each)
        ]
        return examine_files([write(tmp_path / name, {rank: dump(groups, ops, {}) for rank in (0, 1)})])

    with_shared = examined("shared", 2, 2)
    shapes = with_shared.layout.shapes
    assert (shapes.shared_expert, shapes.shared_overlap, shapes.routing_metadata) == (True, False, True)
    assert to_scenario(with_shared.layout)[0].plan.shared_tp == "own"
    told = [(row.planned.hop, row.planned.part) for row in with_shared.diff if row.status is Status.SAME]
    assert told[2:4] == [("all_gather", "shared_expert"), ("reduce_scatter", "shared_expert")]
    for pairs in ((1, 1), (1, 3), (2, 1)):  # attention alone; a dense layer between; one before the first
        assert not examined(f"without{pairs}", *pairs).layout.shapes.shared_expert


@pytest.mark.parametrize(("name", "chunks"), [("megatron-a", 4), ("megatron-b", 1)])
def test_virtual_stages_are_written_into_the_scenario(name: str, chunks: int) -> None:
    layout = recover(read_run([DATA / name]))
    scenario = to_scenario(layout)[0]
    assert scenario.plan.chunks == chunks
    assert BareScenario.from_dict(scenario.to_dict()).plan.chunks == chunks
