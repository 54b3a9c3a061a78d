"""The MoE contracts side by side: sums, tokens before and after de-duplication, all rows, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.scenario.step import rows_words, tokens_per_replica
from tracer.traffic.line import crossing_share, layers_by_stage
from tracer.traffic.moe import RowBytes, average_copies, dispatched_rows, pulled_bytes

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ContractRow:
    """What one way of running a MoE block sends per GPU and layer; the two tiers' times overlap."""

    name: str
    how: str
    nvlink_bytes: float
    ib_bytes: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Contracts:
    """Every contract on one mesh, in a fixed order."""

    scenario: Scenario
    tokens: int
    entries: tuple[ContractRow, ...]

    @property
    def note(self) -> str:
        """What the figures are."""
        return (
            f"Per GPU and MoE layer, there and back, in {rows_words(self.scenario, self.tokens)}, uniform "
            "picks. "
            "TP is over the dispatch group's size, rows gathered and summed; DWDP moves weights, whatever T."
        )

    def headings(self) -> tuple[str, ...]:
        """Column heads of :meth:`rows`."""
        return ("contract", "NVLink", "IB", "time", "what moves")

    def rows(self) -> list[Sequence[str]]:
        """Cells a person reads."""
        return [
            (
                entry.name,
                format_bytes(entry.nvlink_bytes),
                format_bytes(entry.ib_bytes),
                format_seconds(entry.seconds),
                entry.how,
            )
            for entry in self.entries
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "phase": self.scenario.phase,
            "tokens_per_replica": self.tokens,
            "contracts": [entry.to_dict() for entry in self.entries],
        }


def compare_contracts(scenario: Scenario) -> Contracts:
    """TP, EP (by picks, GPU and NVLink domain), all-gather/reduce-scatter and DWDP over one dispatch group.

    Raises:
        ConfigError: when the model has no experts, or the mesh is too large to list.
    """
    tokens = tokens_per_replica(scenario)
    rows, size = dispatched_rows(scenario, tokens), RowBytes.of(scenario).both
    copies = average_copies(scenario)
    model, mesh = scenario.model, scenario.mesh
    share = crossing_share(scenario, (Axis.ETP, Axis.EP), layers_by_stage(scenario, model.is_moe))
    group = mesh.dispatch_size
    row = model.need("hidden", "size a row") * BYTES[scenario.dtype.activations]
    all_rows = (group - 1) * rows * size
    sums = 2 * (group - 1) * rows * row
    pulled = pulled_bytes(scenario)
    picks = copies.messages - copies.messages_ib
    found = (
        (
            "tp",
            "partial sums of every row, experts sliced over the group",
            sums * (1 - share),
            sums * share,
        ),
        (
            "ep, every pick",
            f"{copies.messages:.3g} copies per token, none saved (low latency)",
            picks * rows * size,
            copies.messages_ib * rows * size,
        ),
        (
            "ep, one per GPU",
            f"{copies.gpus:.3g} copies per token straight to distinct GPUs",
            (copies.gpus - copies.gpus_ib) * rows * size,
            copies.gpus_ib * rows * size,
        ),
        (
            "ep, one per island",
            f"{copies.ib:.3g} copies per token over IB, relays forward over NVLink",
            copies.nvlink * rows * size,
            copies.ib * rows * size,
        ),
        ("ag_rs", "every row to every GPU of the group", all_rows * (1 - share), all_rows * share),
        ("dwdp", "weights of the experts that are not local", *pulled),
    )
    return Contracts(scenario, tokens, tuple(_row(scenario, *entry) for entry in found))


def _row(scenario: Scenario, name: str, how: str, nvlink: float, ib: float) -> ContractRow:
    cluster = scenario.cluster
    return ContractRow(
        name, how, nvlink, ib, max(nvlink / cluster.nvlink.bytes_per_s, ib / cluster.ib.bytes_per_s)
    )
