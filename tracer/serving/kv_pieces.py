"""K/V between pools: which prefill rank sends which heads and layers to which decode rank."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.memory.kv import kv_cp, kv_cps_of, kv_dcp, stored_heads
from tracer.memory.kv_bytes import index_bytes
from tracer.memory.kv_owners import kv_bytes_of_heads, position_bytes
from tracer.model.layers import CompressedAttention, LatentAttention, LinearAttention, Mamba2
from tracer.serving.state_pieces import Place, state_moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracer.model.layers import Attention, LayerKind
    from tracer.scenario.scenario import Scenario
    from tracer.serving.pools import Pools

Shard = tuple[int, int]
"""(CP coordinate, turn within a DCP group): ranks of one shard keep the same positions."""


@dataclass(frozen=True, slots=True)
class KvPiece:
    """K/V that one rank sends to one other: heads (none listed: the MLA latent), layers, positions.

    A state has no positions: its heads are those of the mixer.

    ``src`` is a rank of the prefill pool, ``dst`` one of the decode pool, each in its own numbers.
    """

    src: int
    dst: int
    layers: range
    heads: tuple[int, ...]
    positions: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """JSON values; layers from 1, both ends included."""
        return {
            "src": self.src,
            "dst": self.dst,
            "layers": [self.layers.start, self.layers.stop - 1],
            "heads": list(self.heads),
            "positions": self.positions,
            "bytes": self.bytes,
        }


def kv_pieces(pools: Pools, position: int | None = None) -> tuple[KvPiece, ...]:
    """Everything that moves for the whole prompt, or for one of its positions.

    Every rank of the decode pool gets the heads it will keep, its replicas of them too. Where several
    prefill ranks hold a head, the decode ranks that need it ask them in turn.
    """
    _check_latent(pools)
    model = pools.prefill.model
    if model.layer_kinds:
        found = [piece for kind, layers in model.kinds() for piece in _of_kind(pools, kind, layers, position)]
        return tuple(sorted(found, key=lambda piece: (piece.src, piece.dst, piece.layers.start)))
    pieces: list[KvPiece] = []
    for (ours, theirs), positions in sorted(_counts(pools, position).items()):
        for source, target, heads in _head_moves(pools, ours, theirs):
            each = kv_bytes_of_heads(pools.prefill, len(heads))
            pieces += _pieces(pools, source, target, heads, positions, each * positions)
    return tuple(sorted(pieces, key=lambda piece: (piece.src, piece.dst, piece.layers.start)))


def _counts(
    pools: Pools, position: int | None, first: int = 0, every: int = 1
) -> dict[tuple[Shard, Shard], int]:
    """Positions by the shards that have them: of the prompt from ``first`` on, each ``every``-th; or one."""
    if position is None:
        return shard_counts(pools, first, every)
    kept = position >= first and (position + 1) % every == 0
    return {_shard_pair(pools, position): 1} if kept else {}


def _pieces(
    pools: Pools,
    source: Place,
    target: Place,
    heads: tuple[int, ...],
    positions: int,
    size: int,
    layers: frozenset[int] | None = None,
) -> Iterator[KvPiece]:
    """``size`` bytes a layer between two places, for each run of layers (None: all) that both hold."""
    for source_stage, target_stage, common in _layer_moves(pools):
        src, dst = _rank(pools.prefill, source, source_stage), _rank(pools.decode, target, target_stage)
        for run in [common] if layers is None else runs_of(layers.intersection(common)):
            yield KvPiece(src, dst, run, heads, positions, size * len(run))


def runs_of(numbers: Iterable[int]) -> list[range]:
    """Numbers as ascending runs.

    >>> runs_of({1, 2, 5})
    [range(1, 3), range(5, 6)]
    """
    found: list[range] = []
    for number in sorted(numbers):
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def _of_kind(
    pools: Pools, kind: LayerKind, layers: tuple[int, ...], position: int | None
) -> Iterator[KvPiece]:
    """What moves of the layers of one kind: its K/V, of a window the last positions alone, or its state."""
    attention, numbers = kind.attention, frozenset(layers)
    if isinstance(attention, LinearAttention | Mamba2):
        for source, target, held, size in state_moves(pools, kind, attention) if position is None else ():
            yield from _pieces(pools, source, target, tuple(held), 0, size, numbers)
        return
    if attention is None or not kind.kv_values:
        return
    window = getattr(attention, "window", None)
    first = 0 if window is None else max(0, pools.prefill.token.prompt - window)
    yield from _kv_of_kind(pools, kind, numbers, _counts(pools, position, first), entries=False)
    ratio = attention.ratio if isinstance(attention, CompressedAttention) else 0
    if ratio:
        yield from _kv_of_kind(pools, kind, numbers, _counts(pools, position, 0, ratio), entries=True)


def _kv_of_kind(
    pools: Pools,
    kind: LayerKind,
    layers: frozenset[int],
    counts: dict[tuple[Shard, Shard], int],
    *,
    entries: bool,
) -> Iterator[KvPiece]:
    """K/V of some positions, or compressed entries; an indexer's key comes to each rank once."""
    attention = kind.attention
    own = index_bytes(kind) if entries or not isinstance(attention, CompressedAttention) else 0
    whole = position_bytes(pools.prefill, kind) - index_bytes(kind)
    for (ours, theirs), positions in sorted(counts.items()):
        indexed: set[Place] = set()
        for source, target, heads in _head_moves(pools, ours, theirs, attention):
            held = len(stored_heads(pools.prefill, _rank(pools.prefill, source, 0), attention))
            each = whole // held * len(heads) if held else whole
            each += 0 if target in indexed else own
            indexed.add(target)
            yield from _pieces(pools, source, target, heads, positions, each * positions, layers)


def _check_latent(pools: Pools) -> None:
    """MLA's latent cannot become the heads that another kind of CP keeps, nor the reverse."""
    parts = {scenario.plan.head_parts(scenario.mesh.cp) > 1 for scenario in (pools.prefill, pools.decode)}
    if pools.prefill.model.mla and len(parts) > 1:
        raise ConfigError(
            "mesh.kv_exchange",
            str(pools.prefill.plan.kv_exchange),
            "keeps MLA's K/V as heads in one pool and as a latent in the other",
            "take the same kind of context parallelism in both pools",
        )


def shard_counts(pools: Pools, first: int = 0, every: int = 1) -> dict[tuple[Shard, Shard], int]:
    """How many positions of the prompt each pair of shards (prefill's, decode's) has in common.

    Counted are those from ``first`` on, of which each ``every``-th completes an entry.
    """
    ours, theirs = pools.prefill, pools.decode
    prompt = ours.token.prompt
    counts: Counter[tuple[Shard, Shard]] = Counter()
    for our_cp, our_run in _cp_runs(ours, prompt):
        for their_cp, their_run in _cp_runs(theirs, prompt):
            run = range(max(our_run.start, their_run.start, first), min(our_run.stop, their_run.stop))
            for (our_turn, their_turn), positions in _turns(ours, theirs, run, every).items():
                counts[(our_cp, our_turn), (their_cp, their_turn)] += positions
    return {pair: positions for pair, positions in counts.items() if positions}


def _cp_runs(scenario: Scenario, prompt: int) -> Iterator[tuple[int, range]]:
    """(CP coordinate, run of its positions in the prompt)."""
    for cp in range(scenario.mesh.cp):
        for run in scenario.landing.positions_of_share(cp):
            yield cp, range(run.start, min(run.stop, prompt))


def _turns(ours: Scenario, theirs: Scenario, run: range, every: int) -> Counter[tuple[int, int]]:
    """How many positions of a run have which turns in the DCP groups of both sides.

    Turns change at multiples of interleave·cp, and both come round together after their common multiple.
    """
    found: Counter[tuple[int, int]] = Counter()
    if not run:
        return found
    steps = [(side.plan.dcp_interleave * side.mesh.cp, side.plan.dcp) for side in (ours, theirs)]
    lap = lcm(every, *(step * dcp for step, dcp in steps))
    laps, rest = divmod(len(run), lap)
    for stop, times in ((run.start + lap, laps), (run.start + rest, 1)):
        at = run.start
        while times and at < stop:
            end = min(stop, *((at // step + 1) * step for step, dcp in steps if dcp > 1), stop)
            our_turn, their_turn = (at // step % dcp for step, dcp in steps)
            found[our_turn, their_turn] += (end // every - at // every) * times
            at = end
    return found


def _shard_pair(pools: Pools, position: int) -> tuple[Shard, Shard]:
    ours, theirs = ((kv_cp(s, position), kv_dcp(s, position)) for s in (pools.prefill, pools.decode))
    return ours, theirs


def _rank(scenario: Scenario, place: tuple[int, int], stage: int) -> int:
    return scenario.mesh.rank(tp=place[0], cp=place[1], dp=scenario.replica, pp=stage)


def _layer_moves(pools: Pools) -> Iterator[tuple[int, int, range]]:
    """(prefill stage, decode stage, a run of layers both have)."""
    for source_stage, ours in _runs(pools.prefill):
        for target_stage, theirs in _runs(pools.decode):
            layers = range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
            if layers:
                yield source_stage, target_stage, layers


def _runs(scenario: Scenario) -> list[tuple[int, range]]:
    """(stage, run of its layers), numbered from 1."""
    return [(stage, run) for stage, runs in enumerate(scenario.stage_runs) for run in runs]


def _head_moves(
    pools: Pools, ours: Shard, theirs: Shard, attention: Attention | None = None
) -> list[tuple[Place, Place, tuple[int, ...]]]:
    """(prefill place, decode place, KV heads): every decode rank of the shard gets the heads it keeps.

    ``attention`` is that of the layers (None: the model's main kind).
    """
    sources = _places_by_head(pools.prefill, ours, attention)
    targets = _places_by_head(pools.decode, theirs, attention)
    found: dict[tuple[Place, Place], list[int]] = {}
    for head, takers in targets.items():
        holders = sources[head]
        for turn, target in enumerate(takers):
            found.setdefault((target, holders[turn % len(holders)]), []).append(head)
    one = isinstance(attention, LatentAttention | CompressedAttention)
    one = pools.prefill.model.mla if attention is None else one
    latent = one and pools.prefill.plan.head_parts(pools.prefill.mesh.cp) == 1
    return [
        (source, target, () if latent else tuple(heads)) for (target, source), heads in sorted(found.items())
    ]


def _places_by_head(
    scenario: Scenario, shard: Shard, attention: Attention | None = None
) -> dict[int, list[Place]]:
    """(tp, cp) of the ranks of a shard that keep each KV head, ascending; the MLA latent counts as head 0."""
    found: dict[int, list[Place]] = {}
    cp, turn = shard
    for tp in range(turn, scenario.mesh.tp, scenario.plan.dcp):
        for keeper in kv_cps_of(scenario, cp):
            for head in stored_heads(scenario, _rank(scenario, (tp, keeper), 0), attention) or (0,):
                found.setdefault(head, []).append((tp, keeper))
    return found
