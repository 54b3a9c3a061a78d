"""A recorded layer beside the trip's, groups against a scenario or a launch, and what sizes say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runs.made import DATA, Op, dump, write
from tracer.errors import ConfigError
from tracer.runs.against import against, against_scenario
from tracer.runs.alignment import align
from tracer.runs.diff import DiffRow, Status
from tracer.runs.phases import Phase
from tracer.runs.planned import PlannedOp, planned_layer
from tracer.runs.reading.files import read_run
from tracer.runs.reading.recording import OpKind
from tracer.runs.report import RunReport, examine, examine_files, ops_of, run_problems
from tracer.runs.scenario import to_scenario
from tracer.runs.shapes import Families
from tracer.scenario.scenario import Scenario
from tracer.trip.hop import Part

RUNS = ("megatron-a", "megatron-b")


@pytest.fixture(scope="module", params=RUNS)
def report(request: pytest.FixtureRequest) -> RunReport:
    return examine_files([DATA / request.param])


def layer(report: RunReport) -> list[DiffRow]:
    return [row for row in report.diff if row.status is not Status.OUTSIDE]


def changed(report: RunReport, **tables: dict[str, Any]) -> RunReport:
    """The run held against the recovered scenario with some keys changed."""
    told = to_scenario(report.layout)[0].to_dict()
    for name, keys in tables.items():
        told[name] |= keys
    told["cluster"] = {"gpus_per_node": 8}
    return examine(report.recording, against_scenario(Scenario.from_dict(told)))


def test_every_operation_of_a_forward_layer_is_explained(report: RunReport) -> None:
    rows = layer(report)
    told = [(row.status, row.recorded.kind if row.recorded else None, row.why.split(":")[0]) for row in rows]
    assert [(status, kind) for status, kind, _ in told] == [
        (Status.DTYPE, OpKind.ALL_GATHER),
        (Status.SAME, OpKind.REDUCE_SCATTER),
        (Status.SAME, OpKind.ALL_REDUCE),
        (Status.SAME, OpKind.ALL_GATHER),
        (Status.SAME, OpKind.ALL_GATHER),
        (Status.SAME, OpKind.ALL_TO_ALL),
        (Status.SAME, OpKind.ALL_TO_ALL),
        (Status.SAME, OpKind.ALL_TO_ALL),
        (Status.SAME, OpKind.REDUCE_SCATTER),
    ]
    assert "FP8" in rows[0].why
    assert [row.planned.hop for row in (rows[2], rows[3], rows[6]) if row.planned is not None] == [
        "counts_reduce", "counts_gather", "probs_dispatch",
    ]  # fmt: skip
    assert all("shared_tp = own" in rows[place].why for place in (4, 8))
    assert not any(row.differs for row in rows)
    assert report.group_differences == ()


def test_what_lies_outside_the_layers_is_named(report: RunReport) -> None:
    phases = {row.phase for row in report.diff if row.status is Status.OUTSIDE}
    assert Phase.UNKNOWN not in phases
    assert {Phase.PIPELINE, Phase.INPUT, Phase.SCALING} <= phases
    a_and_b = {"megatron-a": Phase.BACKWARD, "megatron-b": Phase.LOSS}
    assert a_and_b[Path(report.recording.ranks[0].file).parent.name] in phases
    counted = sum(row.count for row in report.diff if row.status is Status.OUTSIDE)
    inside = sum(len(found.ops) for each in report.classified.values() for found in each.layers)
    assert counted + inside == sum(len(record.ops) for record in report.recording.ranks.values())


def test_a_shared_expert_that_the_scenario_lacks_is_a_difference_with_its_flag(report: RunReport) -> None:
    held = changed(report, mesh={"shared_tp": "whole", "shared_overlap": False})
    extra = [row for row in layer(held) if row.differs]
    assert [row.recorded.kind for row in extra if row.recorded] == [OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER]
    assert all(row.fix is not None and "shared_tp = own" in row.fix for row in extra)
    assert held.found and any("shared" in line for line in run_problems(held))


def test_other_bytes_dtypes_and_hops_are_told_apart(report: RunReport) -> None:
    def told(**tables: dict[str, Any]) -> set[tuple[str, str]]:
        rows = layer(changed(report, **tables))
        return {(str(row.status), row.fix or "") for row in rows if row.differs}

    assert any("token.prompt" in fix for status, fix in told(token={"prompt": 64}) if status == "bytes")
    assert ("dtype", "set dtype.dispatch = bf16") in told(dtype={"dispatch": "fp8"})
    assert "extra" in {status for status, _ in told(mesh={"sp": "off"})}
    assert any("contract" in fix for _, fix in told(mesh={"contract": "ag_rs", "routing_metadata": False}))


def test_a_scenario_without_routing_metadata_is_told_how_to_ask_for_it(report: RunReport) -> None:
    rows = layer(changed(report, mesh={"routing_metadata": False}))
    extra = [row for row in rows if row.status is Status.EXTRA]
    assert [row.fix for row in extra] == ["set mesh.routing_metadata = true"] * 3
    assert all(row.explained for row in extra)


def test_one_dtype_of_gathers_cannot_tell_a_run_that_casts_some(report: RunReport) -> None:
    rows = layer(changed(report, dtype={"tp_gather": "fp8"}))
    assert rows[0].status is Status.SAME
    mixed = [row for row in rows if row.status is Status.DTYPE]
    assert [row.planned.part for row in mixed if row.planned] == [Part.SHARED]
    assert "casts only some" in mixed[0].why and not mixed[0].differs


def planned(*kinds: OpKind) -> list[PlannedOp]:
    return [PlannedOp(kind, "tp", Part.FFN, str(kind), "bf16", None) for kind in kinds]


def test_alignment_shifts_nothing_where_one_side_lacks_an_operation(tmp_path: Path) -> None:
    gather: Op = ("1", "_all_gather_base", [8, 64], [16, 64])
    total: Op = ("1", "_reduce_scatter_base", [16, 64], [8, 64])
    ops: list[tuple[Op, dict[str, Any]]] = [(gather, {}), (gather, {}), (total, {})]
    folder = write(tmp_path / "run", {0: dump({"1": ("mesh_tp", [0, 1])}, ops, {})})
    recorded = read_run([folder]).ranks[0].ops
    plan = planned(OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE)
    pairs = align(recorded, plan, Families())
    whole = [pair for pair in pairs if None not in pair]
    assert whole in ([(0, 0), (2, 1)], [(1, 0), (2, 1)])
    assert (None, 2) in pairs and len(pairs) == 4
    assert align([], plan, Families()) == [(None, 0), (None, 1), (None, 2)]


def test_a_dense_layer_of_an_inference_run(tmp_path: Path) -> None:
    """Two sums a layer over tp, no backward: the forward pass of a server without sequence parallelism."""
    ops = [(("1", "all_reduce", [32, 256], [32, 256]), {"collective_seq_id": n + 1}) for n in range(6)]
    dumps = {rank: dump({"1": ("tp:0", [0, 1])}, ops, {}) for rank in (0, 1)}
    report = examine_files([write(tmp_path / "run", dumps)])
    rows = layer(report)
    assert [row.status for row in rows] == [Status.SAME, Status.SAME]
    assert [row.planned.part for row in rows if row.planned] == [Part.ATTENTION, Part.FFN]
    assert report.layout.shapes.sequence_parallel is False and report.layout.framework == "vllm"
    assert not report.found or report.blame.suspects


def test_a_plan_is_the_first_layer_with_experts() -> None:
    from tracer.scenario.files import load_scenario

    plan = planned_layer(load_scenario("deepseek-v3-prefill-ep32"))
    assert [op.hop for op in plan][-2:] == ["dispatch", "combine"]


def test_groups_against_a_launch_and_a_scenario() -> None:
    run = read_run([DATA / "megatron-a"])
    line = "megatron --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 "
    right = examine(run, against(line + "--expert-model-parallel-size 4 --expert-tensor-parallel-size 1", 16))
    assert right.group_differences == ()
    wrong = examine(run, against(line + "--expert-model-parallel-size 2 --expert-tensor-parallel-size 1", 16))
    assert {each.family for each in wrong.group_differences or ()} == {"ep", "edp", "etp-ep", "etp-ep-pp"}
    first = (wrong.group_differences or ())[0]
    assert str(first).endswith(f"the layout's {first.family} group is {list(first.expected)}")
    other = examine(run, against("six-cuts", 16))
    assert other.group_differences and other.found


def test_an_axis_that_the_run_lacks_is_a_difference(tmp_path: Path) -> None:
    pairs = ({"1": ("mesh_tp", [0, 1])}, {"2": ("mesh_tp", [2, 3])})
    run = read_run([write(tmp_path / "run", {rank: dump(pairs[rank // 2], [], {}) for rank in range(4)})])
    line = "megatron --tensor-model-parallel-size 2"
    assert examine(run, against(line, 4)).group_differences == ()
    told = examine(run, against(line + " --pipeline-model-parallel-size 2", 4)).group_differences or ()
    assert [str(each) for each in told] == [
        "no pp group is recorded: the layout's pp group of rank 0 is [0, 2]"
    ]


def test_unnamed_groups_are_compared_as_sets() -> None:
    from tests.runs.test_layout import without_names

    run = without_names(read_run([DATA / "megatron-a"]))
    assert examine(run).group_differences is None
    line = "megatron --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 "
    right = examine(run, against(line + "--expert-model-parallel-size 4 --expert-tensor-parallel-size 1", 16))
    assert right.group_differences == ()
    wrong = examine(run, against("megatron --tensor-model-parallel-size 16", 16))
    assert wrong.group_differences


@pytest.mark.parametrize("text", ["nothing-like-it", "no-framework --tp 2", "gone.toml"])
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"known|framework|cannot be read|did you mean"):
        against(text, 16)


def test_imbalance_is_read_from_what_each_rank_receives() -> None:
    report = examine_files([DATA / "megatron-a"])
    for each in report.imbalances:
        assert sum(each.rows.values()) == 4096 * len(each.rows), "rows are neither made nor lost"
        assert each.worst >= 1
    assert report.imbalances and max(each.worst for each in report.imbalances) > 1.01


def event(**more: Any) -> dict[str, Any]:
    return {"ph": "X", "ts": 0, "dur": 0, "args": {}} | more


def test_steps_overlap_and_bandwidth_of_a_trace(tmp_path: Path) -> None:
    comm = {
        "Collective name": "allreduce", "In msg nelems": 500_000, "Out msg nelems": 500_000, "dtype": "Float",
        "Process Group Name": "7", "Process Group Description": "mesh_dp",
        "Process Group Ranks": "[0, 1]", "External id": 5,
    }  # fmt: skip
    events = [
        event(name="ProfilerStep#3", cat="user_annotation", ts=0, dur=1000),
        event(name="record_param_comms", cat="cpu_op", ts=10, dur=1, args=comm),
        event(name="ncclDevKernel_AllReduce", cat="kernel", ts=100, dur=200, args={"External id": 5}),
        event(name="gemm", cat="kernel", ts=0, dur=150),
        event(name="gemm", cat="kernel", ts=250, dur=600),
    ]
    trace = {"distributedInfo": {"rank": 1, "world_size": 2, "backend": "nccl"}, "traceEvents": events}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    report = examine_files([tmp_path / "trace.json"])
    (step,) = report.steps
    assert (step.rank, step.number, step.length_ns) == (1, 3, 1_000_000)
    assert (step.communication_ns, step.compute_ns, step.exposed_ns) == (200_000, 750_000, 100_000)
    assert step.overlap == pytest.approx(0.5)
    (rate,) = report.bandwidths
    assert rate.bytes_per_s == pytest.approx(2_000_000 / 200e-6)
    assert "10 GB/s" in str(report) and "50% overlapped" in str(report)


def test_split_sizes_of_a_trace_tell_the_imbalance(tmp_path: Path) -> None:
    for rank, got in ((0, "[10, 30]"), (1, "[20, 20]")):
        args = {
            "Collective name": "all_to_allv", "In msg nelems": 40, "Out msg nelems": 40, "dtype": "BFloat16",
            "Process Group Name": "7", "Process Group Description": "mesh_ep",
            "Process Group Ranks": "[0, 1]",
            "Out split size": got, "In split size": "[20, 20]",
        }  # fmt: skip
        trace = {
            "distributedInfo": {"rank": rank, "world_size": 2},
            "traceEvents": [event(name="record_param_comms", cat="cpu_op", args=args)],
        }
        (tmp_path / f"trace_{rank}.json").write_text(json.dumps(trace))
    (found,) = examine_files([tmp_path]).imbalances
    assert found.rows == {0: 40, 1: 40}


def test_operations_of_one_rank() -> None:
    report = examine_files([DATA / "gloo-whole"])
    assert len(ops_of(report, 3)) == 17
    with pytest.raises(ConfigError, match="gave no recording"):
        ops_of(report, 9)
