"""What a replay found: of one prefill, and of a generation.

The largest error, transfers, bytes, closed forms and the first difference; for a generation also its tokens
and whether K/V lies where its owners' claim says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.proof.replay.closed_forms import Form
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The mesh against one device, and what moved against the trips.

    ``bytes_moved`` and ``bytes_logged`` are in the scenario's dtypes, padding and dummy rows included;
    ``padding_bytes`` is their part of it. Pulled weights are tallied apart: ``pulled_bytes`` once for a
    rank and layer. ``memory_bytes`` is what the arrays of all virtual GPUs took at their most.

    ``print(report)`` says it in words.
    """

    scenario: Scenario
    fault: str | None
    max_abs_error: float
    equal: bool
    tokens_checked: int
    transfers_equal: bool
    bytes_moved: int
    bytes_logged: int
    padding_bytes: int
    pulled_bytes: int
    closed_forms: tuple[Form, ...]
    memory_bytes: int
    seconds: float
    first_difference: str | None

    @property
    def forms_hold(self) -> bool:
        """Whether every closed form agrees with what moved."""
        return all(form.holds for form in self.closed_forms)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        same_bytes = self.bytes_moved == self.bytes_logged
        return self.equal and self.transfers_equal and same_bytes and self.forms_hold

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values; an error that is not a finite number is null."""
        names = ("max_abs_error", "equal", "tokens_checked", "transfers_equal", "bytes_moved", "bytes_logged")
        more = ("padding_bytes", "pulled_bytes", "memory_bytes", "fault", "first_difference")
        return {
            **{name: getattr(self, name) for name in names},
            "max_abs_error": self.max_abs_error if isfinite(self.max_abs_error) else None,
            "ok": self.ok,
            **{name: getattr(self, name) for name in more},
            "closed_forms": [form.to_dict() for form in self.closed_forms],
        }

    def __str__(self) -> str:
        mesh, model = self.scenario.mesh, self.scenario.model
        sizes = " ".join(f"{axis}{mesh.size_of(axis)}" for axis in ("tp", "cp", "dp", "pp", "ep", "etp"))
        lines = [
            f"Replay of {self.scenario.name or 'a scenario'}: {mesh.world_size} GPUs, {sizes}; "
            f"{model.layers} layers, hidden {model.hidden}, float64",
            *([f"  fault      {self.fault}"] if self.fault is not None else []),
            f"  numbers    {_verdict(self.equal)}: off one device by at most {self.max_abs_error:.2g}, "
            f"over {self.tokens_checked} tokens",
            f"  transfers  {_verdict(self.transfers_equal)}: what carried each row against its trip",
            f"  bytes      {_verdict(self.bytes_moved == self.bytes_logged)}: {self.bytes_moved:,} moved, "
            f"{self.bytes_logged:,} in the trips ({self.padding_bytes:,} moved for padding and dummies)",
            f"  formulas   {_verdict(self.forms_hold)}: {len(self.closed_forms)} blocks with a closed form",
            *(
                [f"  weights    {self.pulled_bytes:,} bytes pulled, tallied apart"]
                if self.pulled_bytes
                else []
            ),
            f"  cost       {self.seconds:.2f} s, {self.memory_bytes / 2**20:.1f} MiB of arrays",
            *([f"  first      {self.first_difference}"] if self.first_difference is not None else []),
        ]
        return "\n".join(lines)


def _verdict(holds: bool) -> str:
    return "equal" if holds else "DIFFER"


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """A meshed prefill and its decode steps against one device, the trips and the owners' claim.

    ``tokens`` are the words that the mesh sampled, by replica. ``context_bytes`` is K/V of earlier positions
    that pass-KV moved beside the trips, ``transfer_bytes`` what moved between pools.

    ``print(report)`` says it in words.
    """

    prefill: Scenario
    decode: Scenario
    steps: int
    fault: str | None
    max_abs_error: float
    equal: bool
    tokens: dict[int, list[int]]
    tokens_equal: bool
    transfers_equal: bool
    owners_equal: bool
    bytes_moved: int
    bytes_logged: int
    context_bytes: int
    transfer_bytes: int
    first_difference: str | None

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        same_bytes = self.bytes_moved == self.bytes_logged
        same = self.equal and self.tokens_equal and self.transfers_equal and self.owners_equal
        return same and same_bytes

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        names = (
            "ok", "steps", "fault", "max_abs_error", "equal", "tokens_equal", "transfers_equal",
            "owners_equal", "bytes_moved", "bytes_logged", "context_bytes", "transfer_bytes",
            "first_difference",
        )  # fmt: skip
        tokens = {str(replica): words for replica, words in self.tokens.items()}
        return {**{name: getattr(self, name) for name in names}, "tokens": tokens}

    def __str__(self) -> str:
        requests = len(self.tokens)
        lines = [
            f"Replay of {self.prefill.name or 'a scenario'}: {requests} prompt{'s' * (requests > 1)} of "
            f"{self.prefill.token.prompt}, {self.steps} decode steps, float64",
            *([f"  fault      {self.fault}"] if self.fault is not None else []),
            f"  numbers    {_verdict(self.equal)}: off one device by at most {self.max_abs_error:.2g}",
            f"  tokens     {_verdict(self.tokens_equal)}: {self.steps + 1} sampled for each prompt",
            f"  transfers  {_verdict(self.transfers_equal)}: what carried each row against its trip",
            f"  owners     {_verdict(self.owners_equal)}: K/V kept on each GPU against the claim",
            f"  bytes      {_verdict(self.bytes_moved == self.bytes_logged)}: {self.bytes_moved:,} moved, "
            f"{self.bytes_logged:,} in the trips",
        ]
        if self.context_bytes:
            lines.append(f"  context    {self.context_bytes:,} bytes of earlier K/V moved beside the trips")
        if self.transfer_bytes:
            lines.append(f"  last trip  {self.transfer_bytes:,} bytes of K/V moved between the pools")
        if self.first_difference is not None:
            lines.append(f"  first      {self.first_difference}")
        return "\n".join(lines)


def _verdict_of_generation_report(holds: bool) -> str:
    return "equal" if holds else "DIFFER"
