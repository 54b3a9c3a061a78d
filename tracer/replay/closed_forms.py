"""Elements that each GPU sends in a hop of the whole batch, by formula, beside what it sent.

The formulas are those of the counting rules, section 7, with T the padded tokens of a replica.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tracer.hop import HopKind
from tracer.plan import Contract, Sp

if TYPE_CHECKING:
    from tracer.replay.ledger import Place
    from tracer.replay.run import Run
    from tracer.scenario import Scenario

WHY = "state the closed form"
Formula = tuple[str, int]


class Claim(StrEnum):
    """How a formula binds: every GPU sends it; all together do, counting picks that stay; or at most it."""

    EACH = "each"
    TOTAL = "total"
    AT_MOST = "at_most"


@dataclass(frozen=True, slots=True)
class Form:
    """A hop's formula and what was sent, in elements: ``sent`` by each GPU of the stage, ascending.

    ``kept`` are the elements of picks that stay at home, which the formula by picks counts as well.
    """

    place: Place
    claim: Claim
    formula: str
    expected: int
    sent: tuple[int, ...]
    kept: int = 0

    @property
    def holds(self) -> bool:
        """Whether what was sent agrees with the formula."""
        if self.claim is Claim.EACH:
            return set(self.sent) == {self.expected}
        total = sum(self.sent) + self.kept
        stated = self.expected * len(self.sent)
        return total == stated if self.claim is Claim.TOTAL else sum(self.sent) <= stated

    def to_dict(self) -> dict[str, Any]:
        """The form as JSON values."""
        layer, part, kind = self.place
        return {
            "layer": layer,
            "part": str(part),
            "kind": str(kind),
            "formula": self.formula,
            "claim": str(self.claim),
            "expected": self.expected,
            "least": min(self.sent),
            "most": max(self.sent),
            "holds": self.holds,
        }


def closed_forms(run: Run) -> tuple[Form, ...]:
    """Forms of every hop that has one; none when replicas' prompts differ in length."""
    lengths = {int(length) for length in run.batch.share}
    if len(lengths) > 1:
        return ()
    rows = lengths.pop()
    found = [_form(run, place, rows) for place in run.machine.ledger.places()]
    return tuple(form for form in found if form is not None) + _pull_forms(run)


def _form(run: Run, place: Place, rows: int) -> Form | None:
    stated = _formula(run.scenario, place.kind, rows)
    if stated is None:
        return None
    stage = 0 if place.layer == 0 else run.stage_of_layer(place.layer)
    by_rank = run.machine.ledger.elements_sent(place, run.scenario.mesh.world_size)
    sent = tuple(by_rank[gpu.rank] for gpu in run.stage_gpus(stage))
    claim = _claim(run.scenario, place.kind)
    kept = run.stays.get(place.layer, 0) * run.scenario.need_model().need("hidden", WHY)
    return Form(place, claim, *stated, sent, kept if claim is Claim.TOTAL else 0)


def _pull_forms(run: Run) -> tuple[Form, ...]:
    """Elements that each GPU pulls (DWDP), once a layer, whatever T; none where GPUs hold unequal shares."""
    scenario, model = run.scenario, run.scenario.need_model()
    pulled: dict[Place, Counter[int]] = {}
    for pull in run.machine.ledger.pulled:
        pulled.setdefault(pull.place, Counter())[pull.dst] += pull.elements
    group = scenario.mesh.size_of("ep") * scenario.mesh.size_of("etp")
    found = []
    for place, by_rank in pulled.items():
        placement, width = scenario.placement_of(place.layer), model.need("expert_hidden", WHY)
        if (
            placement.slots is not None
            or placement.experts % placement.ep
            or width * placement.experts % group
        ):
            continue
        whole = placement.experts * 3 * model.need("hidden", WHY) * width
        moved = tuple(by_rank[gpu.rank] for gpu in run.gpus_of_layer(place.layer))
        expected = whole - whole // group
        found.append(Form(place, Claim.EACH, "(1 - 1/(etp·ep)) · E · 3·d·d_expert", expected, moved))
    return tuple(found)


def _claim(scenario: Scenario, kind: HopKind) -> Claim:
    """Copies to experts depend on the picks: low latency sends one for each, high throughput fewer."""
    if kind not in (HopKind.DISPATCH, HopKind.COMBINE) or scenario.plan.contract != Contract.EP:
        return Claim.EACH
    return Claim.TOTAL if scenario.plan.dispatch == "low_latency" else Claim.AT_MOST


def _formula(scenario: Scenario, kind: HopKind, rows: int) -> Formula | None:
    """Formula and value; ``rows`` is T/cp."""
    size_of, hidden = scenario.mesh.size_of, scenario.need_model().need("hidden", WHY)
    tp, split = size_of("tp"), scenario.plan.sp == Sp.MEGATRON
    if kind in (HopKind.ALL_GATHER, HopKind.REDUCE_SCATTER):
        return "(tp-1)/tp · T/cp · d", (tp - 1) * rows // tp * hidden
    if kind is HopKind.ALL_REDUCE:
        return "2·(tp-1)/tp · T/cp · d", 2 * (tp - 1) * rows // tp * hidden
    if kind is HopKind.KV_EXCHANGE:
        return _kv_formula(scenario, rows)
    if kind is HopKind.PP_SEND:
        return ("T/(cp·tp) · d", rows // tp * hidden) if split else ("T/cp · d", rows * hidden)
    if kind in (HopKind.DISPATCH, HopKind.COMBINE):
        return _expert_formula(scenario, rows // tp * hidden)
    return None


def _kv_formula(scenario: Scenario, rows: int) -> Formula:
    size_of, model = scenario.mesh.size_of, scenario.need_model()
    steps = (size_of("cp") - 1) * rows
    if model.mla:
        latent = model.need("kv_lora_rank", WHY) + model.need("qk_rope_head_dim", WHY)
        return "(cp-1) · T/cp · (kv_lora + rope)", steps * latent
    width = model.need("head_dim", WHY) + model.need("v_head_dim", WHY)
    heads = max(1, model.need("kv_heads", WHY) // size_of("tp"))
    return "(cp-1) · T/cp · max(1, n_kv/tp) · (d_k + d_v)", steps * heads * width


def _expert_formula(scenario: Scenario, elements: int) -> Formula:
    """One way of the dispatch group's traffic; without SP every TP rank dispatches its own copy."""
    size_of = scenario.mesh.size_of
    copies, word = (size_of("tp"), "tp · ") if scenario.plan.sp == Sp.OFF else (1, "")
    if scenario.plan.contract == Contract.AG_RS:
        others = size_of("etp") * size_of("ep") - 1
        return f"{word}(etp·ep-1) · T/(cp·tp) · d", copies * others * elements
    picks = copies * scenario.need_model().need("top_k", WHY) * size_of("etp") * elements
    if scenario.plan.dispatch == "low_latency":
        return f"{word}k·etp · T/(cp·tp) · d", picks
    return f"2·{word}k·etp · T/(cp·tp) · d, each copy relayed", 2 * picks
