"""What a GPU holds: its part of the model, its tokens, the bytes of both, and what still fits.

Under DWDP a GPU also has staging buffers, in which pulled experts lie while a layer uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, left, text_table
from tracer.memory.causal_work import RankWork, rank_work
from tracer.memory.kv import kv_cps_of, positions_kept
from tracer.memory.kv_owners import KvShare, kv_share, tokens_in
from tracer.memory.shard_units import gather_bytes
from tracer.memory.share import ModelShare, model_share
from tracer.memory.weights import WeightShard, held_weights
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract, Sp
from tracer.scenario.step import bytes_per_expert

if TYPE_CHECKING:
    from tracer.memory.share import StageLayers
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario


BUFFERS = 2


def staging_bytes(scenario: Scenario, layers: StageLayers) -> int:
    """Bytes of the two ping-pong buffers, each as large as the most experts that a layer pulls.

    Every rank of a group has buffers of one size, that of the rank with the fewest experts of its own
    (SGLang ``srt/layers/moe/dwdp``: experts a peer sends are one number for the whole group). 0 for other
    contracts, for a group of one rank and for a stage without experts; one MoE layer needs one buffer.
    """
    mesh = scenario.mesh
    etp = mesh.etp
    if scenario.plan.contract is not Contract.DWDP or mesh.ep * etp == 1 or not layers.moe:
        return 0
    whole = bytes_per_expert(scenario)
    most = max(
        placement.experts * whole - fewest_experts(placement) * (whole // etp)
        for placement, _ in layers.placements
    )
    return min(BUFFERS, layers.moe) * most


def fewest_experts(placement: Placement) -> int:
    """Distinct experts of the EP rank that has the fewest."""
    if placement.slots is not None:
        return min(len(set(placement.experts_of(rank))) for rank in range(placement.ep))
    return placement.experts // placement.ep


NOT_COUNTED = "activations, communication buffers and the framework's own memory"


@dataclass(frozen=True, slots=True)
class Residency:
    """What one GPU holds.

    ``kv`` is its share of one request's K/V: of the prompt, in decode also of the new tokens so far.
    ``rows`` are the prompt positions whose rows it has outside attention (none in decode),
    ``kv_positions`` those of its CP rank and of those it shares heads with; of these it keeps the K/V of
    ``kv_kept`` (all, but for DCP's shards). ``work`` is the causal attention of its CP rank in prefill.
    ``staging_bytes`` are DWDP's buffers, or the units of sharded weights that are gathered at once.
    ``hbm_bytes`` is the GPU's whole memory, None where the scenario names no hardware or no source states
    its memory.
    """

    share: ModelShare
    weights: tuple[WeightShard, ...]
    kv: KvShare
    staging_bytes: int
    hbm_bytes: int | None
    rows: tuple[range, ...]
    kv_positions: tuple[range, ...]
    kv_kept: int
    work: RankWork
    computes_prompt: bool

    @property
    def rank(self) -> int:
        """The GPU."""
        return self.share.rank

    @property
    def kv_bytes_per_token(self) -> int:
        """K/V of one token that it keeps, in all layers of its stage."""
        return self.kv.bytes_per_position

    @property
    def parameters(self) -> int:
        """Parameters it holds, copies of others' included."""
        return sum(each.parameters for each in self.weights)

    @property
    def weight_bytes(self) -> int:
        """Bytes of its weights, padding and scales included."""
        return sum(each.bytes for each in self.weights)

    @property
    def weight_bytes_by_part(self) -> dict[str, int]:
        """Bytes of its weights by part of the model."""
        found: dict[str, int] = {}
        for each in self.weights:
            found[str(each.part)] = found.get(str(each.part), 0) + each.bytes
        return found

    @property
    def free_bytes(self) -> int | None:
        """Memory that weights and staging buffers leave; negative where they don't fit."""
        return None if self.hbm_bytes is None else self.hbm_bytes - self.weight_bytes - self.staging_bytes

    @property
    def kv_tokens_that_fit(self) -> int | None:
        """Tokens whose K/V this GPU can keep beside its weights, were nothing else in memory.

        None where its memory is not known, or its stage has no layers and so keeps no K/V.
        """
        if self.free_bytes is None or not self.kv.keeps_any:
            return None
        return tokens_in(max(0, self.free_bytes), self.kv)

    def to_dict(self) -> dict[str, Any]:
        """The residency as JSON values: the ``holds`` of ``tracer/data/schemas/rank.schema.json``."""
        return residency_to_dict(self)

    def __str__(self) -> str:
        return residency_text(self)


def residency_of(scenario: Scenario, rank: int, layers: StageLayers | None = None) -> Residency:
    """What a rank holds; ``layers`` saves looking up its stage's.

    Raises:
        ConfigError: for a rank outside the mesh, no model, or a size the model does not state.
    """
    share = model_share(scenario, rank, layers)
    rows, kv_positions = _tokens(scenario, rank)
    return Residency(
        share=share,
        weights=held_weights(scenario, share),
        kv=kv_share(scenario, rank),
        staging_bytes=staging_bytes(scenario, share.layers) + gather_bytes(scenario, rank, share.layers),
        hbm_bytes=hbm_bytes(scenario),
        rows=rows,
        kv_positions=kv_positions,
        kv_kept=positions_kept(scenario, rank),
        work=_work(scenario, rank, share.layers.count),
        computes_prompt=not scenario.decodes,
    )


def _work(scenario: Scenario, rank: int, layers: int) -> RankWork:
    """Causal attention of the rank's CP rank; none where its stage has no layers."""
    cp, parts = scenario.mesh.dense.coordinate(rank, Axis.CP), scenario.plan.head_parts(scenario.mesh.cp)
    work = rank_work(scenario.landing, cp, parts)
    if layers:
        return work
    return replace(work, runs=(), chunks=(), units=0, pairs=0, padding_pairs=0, of_mean=0.0)


def hbm_bytes(scenario: Scenario) -> int | None:
    """Memory of the scenario's GPU, None where neither the scenario nor a source states it."""
    gpu = scenario.cluster.gpu
    return None if gpu is None else gpu.hbm_bytes


def need_hbm_bytes(scenario: Scenario) -> int:
    """Memory of the scenario's GPU.

    Raises:
        ConfigError: when the scenario names no hardware, or no source states its memory.
    """
    why = "say what fits"
    return int(scenario.cluster.need_gpu(why).need("hbm_bytes", why))


def _tokens(scenario: Scenario, rank: int) -> tuple[tuple[range, ...], tuple[range, ...]]:
    """(rows, K/V positions) of the prompt on a rank, padding left out."""
    at, landing = scenario.mesh.coordinates(rank), scenario.landing
    own = landing.positions_on(at[Axis.CP], at[Axis.TP])
    rows = own if scenario.plan.sp is Sp.MEGATRON else landing.positions_of_share(at[Axis.CP])
    share = tuple(run for cp in kv_cps_of(scenario, at[Axis.CP]) for run in landing.positions_of_share(cp))
    if scenario.decodes:
        rows = ()
    if not scenario.stage_layers[at[Axis.PP]]:
        share = ()
    return _real(rows, scenario.token.prompt), _real(share, scenario.token.prompt)


def _real(runs: tuple[range, ...], prompt: int) -> tuple[range, ...]:
    """Runs of positions without padding."""
    cut = (range(run.start, min(run.stop, prompt)) for run in runs)
    return tuple(run for run in cut if run)


MAX_LISTED = 4096
_SHOWN = 12
Pair = list[int] | None
Slots = list[int] | dict[str, Any]


def residency_to_dict(held: Residency) -> dict[str, Any]:
    """JSON values; ranges are ``[start, stop)`` pairs, and what a GPU does not have is null."""
    share = held.share
    return {
        "layers": one_run(share.layers.runs),
        "layer_runs": [[run.start, run.stop - 1] for run in share.layers.runs],
        "dense_layers": share.layers.dense,
        "moe_layers": share.layers.moe,
        "query_heads": _pair(share.query_heads),
        "kv_heads": _pair(share.kv_heads),
        "kv_replicas": share.kv_replicas,
        "dense_hidden": _pair(share.dense_hidden),
        "shared_hidden": _pair(share.shared_hidden),
        "experts": experts_to_dict(share),
        "embedding": _pair(share.embedding),
        "lm_head": _pair(share.lm_head),
        "rows": [_pair(run) for run in held.rows],
        "kv_positions": [_pair(run) for run in held.kv_positions],
        "kv_kept": held.kv_kept,
        "causal_work": held.work.to_dict(),
        "weights": [_shard_to_dict(each) for each in held.weights],
        "parameters": held.parameters,
        "weight_bytes": held.weight_bytes,
        "weight_bytes_by_part": held.weight_bytes_by_part,
        "kv_bytes_per_token": held.kv_bytes_per_token,
        "kv_bytes": held.kv.bytes,
        "staging_bytes": held.staging_bytes,
        "hbm_bytes": held.hbm_bytes,
        "free_bytes": held.free_bytes,
        "kv_tokens_that_fit": held.kv_tokens_that_fit,
    }


def experts_to_dict(share: ModelShare) -> dict[str, Any] | None:
    """Expert slots: the same in most layers, and ``by_layer`` where a layer has a table of its own."""
    if share.expert_hidden is None:
        return None
    common = share.layers.common
    return {
        "hidden": _pair(share.expert_hidden),
        "slots": None if common is None else _listed(common, share.ep_rank),
        "by_layer": {str(layer): _listed(table, share.ep_rank) for layer, table in share.layers.own},
    }


def _listed(placement: Placement, ep_rank: int) -> Slots:
    """The experts of the slots; their number and the first of them when there are very many."""
    slots = placement.experts_on(ep_rank)
    if len(slots) <= MAX_LISTED:
        return list(slots)
    return {"count": len(slots), "first": list(slots[:_SHOWN])}


def _pair(run: range | None) -> Pair:
    return None if run is None else [run.start, run.stop]


def _shard_to_dict(each: WeightShard) -> dict[str, Any]:
    return {
        "part": str(each.part),
        "name": each.name,
        "rows": each.rows,
        "columns": each.columns,
        "count": each.count,
        "parameters": each.parameters,
        "bytes": each.bytes,
        "held_by": each.held_by,
        "why": each.why,
    }


Line = tuple[str, str]
"""What is held, and how much of it."""


def residency_text(held: Residency) -> str:
    """What a GPU holds, one line for each kind of thing."""
    return "\n".join(text_table((left(width=14, gap=0), left(gap=0)), _lines(held), headings=False))


def _lines(held: Residency) -> Iterator[Line]:
    share, layers = held.share, held.share.layers
    kinds = f" ({layers.dense} dense, {layers.moe} MoE)" if layers.moe and layers.dense else ""
    yield "layers", f"{_layer_runs(layers.runs)}{kinds}"
    yield "heads", f"{_span(share.query_heads)}, {_kv(share)}"
    if share.expert_hidden is not None:
        yield from _expert_lines(share, share.expert_hidden)
    for name, rows in (("embedding", share.embedding), ("LM head", share.lm_head)):
        if rows:
            yield name, f"rows {_span(rows)}"
    yield from _token_lines(held)
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in held.weight_bytes_by_part.items())
    yield "weights", f"{format_bytes(held.weight_bytes)}: {parts}"
    if held.staging_bytes:
        yield "staging", f"{format_bytes(held.staging_bytes)} for pulled experts"
    request = f"{format_bytes(held.kv.bytes)} for the request's {held.kv.positions:,} positions here"
    yield "K/V a token", f"{format_bytes(held.kv_bytes_per_token)}: {request}"
    yield "memory", _memory(held)


def one_run(runs: Sequence[range]) -> Pair:
    """First and last layer of a stage whose layers are one run, else None."""
    return [runs[0].start, runs[0].stop - 1] if len(runs) == 1 else None


def _layer_runs(runs: Sequence[range]) -> str:
    return ", ".join(f"{run.start} to {run.stop - 1}" for run in runs) or "none"


def _kv(share: ModelShare) -> str:
    if share.kv_heads is None:
        return "the K/V latent whole"
    also = f" (each on {share.kv_replicas} TP ranks)" if share.kv_replicas > 1 else ""
    return f"KV heads {_span(share.kv_heads)}{also}"


def _expert_lines(share: ModelShare, inner: range) -> list[Line]:
    layers, also = share.layers, f"; inner width {_span(inner)}"
    tables = [("experts", layers.common)] if layers.common is not None else []
    tables += [(f"  layer {layer}", table) for layer, table in layers.own[:_SHOWN]]
    return [(name, _slots(table.experts_on(share.ep_rank)) + also) for name, table in tables]


def _token_lines(held: Residency) -> list[Line]:
    """Where the prompt is; in decode only its K/V is there."""
    sharded = f" ({held.kv_kept:,} of them)" if held.kv_kept < sum(map(len, held.kv_positions)) else ""
    kept = f"K/V of {_runs(held.kv_positions)}{sharded}"
    if not held.computes_prompt:
        return [("prompt", kept)]
    work = f"{held.work.pairs:,} pairs, {held.work.of_mean:.3f} of the mean CP rank's"
    return [("prompt", f"rows {_runs(held.rows)}; {kept}"), ("causal work", work)]


def _slots(slots: Sequence[int]) -> str:
    more = f" … ({len(slots):,} slots)" if len(slots) > _SHOWN else ""
    return " ".join(map(str, slots[:_SHOWN])) + more


def _span(run: range) -> str:
    if not run:
        return "none"
    return f"{run.start:,}" if len(run) == 1 else f"{run.start:,} to {run.stop - 1:,}"


def _runs(runs: Sequence[range]) -> str:
    return ", ".join(_span(run) for run in runs) or "none"


def _memory(held: Residency) -> str:
    if held.hbm_bytes is None or held.free_bytes is None:
        return "not known: name cluster.hardware, or state cluster.hbm_bytes"
    if held.free_bytes < 0:
        return f"{format_bytes(held.hbm_bytes)}: {format_bytes(-held.free_bytes)} short"
    return f"{format_bytes(held.free_bytes)} of {format_bytes(held.hbm_bytes)} left" + (
        ", and no layer here keeps K/V"
        if held.kv_tokens_that_fit is None
        else f": K/V of {held.kv_tokens_that_fit:,} tokens, were nothing else in memory"
    )
