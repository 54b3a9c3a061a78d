"""The K/V hand-over as plain data: two columns of GPUs, and an arrow for each piece that moves.

Prefill stands left, decode right, each GPU as tall as its arrows need; an arrow ends at a place of its own
beside its label, so that none covers another. In a column of over :data:`MAX_TALL` GPUs each is low and says
its name alone: its heads are on its arrows. GPUs that move nothing fold to a line with words, and so does
what is over :data:`MAX_ARROWS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from layouts.scene.labels import plural, stage_layers_text
from layouts.scene.scene import Band, Fold
from tracer.display import format_bytes, short_range
from tracer.memory.kv import positions_kept, stored_heads

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.kv_handover import KvHandover
    from tracer.serving.kv_pieces import KvPiece

MAX_ARROWS = 48
MAX_TALL = 16
BOX_WIDTH, BOX_HEIGHT, BOX_GAP = 184.0, 64.0, 12.0
LOW_HEIGHT, LOW_GAP = 28.0, 6.0
PORT, PORT_PAD = 24.0, 20.0
FAN = 150.0
BAND_PAD, BAND_HEAD, BAND_GAP = 10.0, 30.0, 14.0
HEADER, FOLD_HEIGHT = 66.0, 24.0
LETTER = 6.9
MAX_NAME = 26
THIN, THICK = 1.5, 5.0
_END = {"prefill": "src", "decode": "dst"}
_IDLE = {"prefill": "send", "decode": "get"}


@dataclass(frozen=True, slots=True)
class KeeperBox:
    """One GPU that holds K/V, and where it stands; ``keeps`` are two lines of words, none when it is low."""

    rank: int
    node: str
    keeps: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """One piece that moves: ``payload_bytes`` from a ``source`` in prefill to a ``destination`` in decode.

    Both are ranks in their own pool's numbers. ``width`` follows the bytes; the label
    stands on the last, straight part of the ``path``, at (``x``, ``y``).
    """

    source: int
    destination: int
    payload_bytes: int
    label: str
    path: str
    width: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class PoolColumn:
    """A pool's GPUs: three lines of heading, stages as bands, and what is not drawn as a fold."""

    heading: tuple[str, str, str]
    x: float
    bands: tuple[Band, ...]
    boxes: tuple[KeeperBox, ...]
    fold: Fold | None


@dataclass(frozen=True, slots=True)
class PoolMap:
    """Everything to draw: both columns, the arrows, and totals as the engine has them.

    ``arrows_left_out`` are the pieces over :data:`MAX_ARROWS`, told in ``rest``.
    """

    title: str
    summary: str
    description: str
    width: float
    height: float
    columns: tuple[PoolColumn, PoolColumn]
    arrows: tuple[Arrow, ...]
    arrows_left_out: int
    rest: str


def build_pool_map(moved: KvHandover) -> PoolMap:
    """The picture of a K/V hand-over; its size follows the arrows drawn, not the pools."""
    ordered = _by_pair(moved.pieces)
    drawn, left_out = ordered[:MAX_ARROWS], ordered[MAX_ARROWS:]
    labels = {(sent.src, sent.dst): _label(sent) for sent in drawn}
    label_width = LETTER * max(map(len, labels.values()), default=0) + 24
    right = BOX_WIDTH + 2 * BAND_PAD + FAN + label_width
    columns = (
        _column(moved, "prefill", [(piece.src, piece.dst) for piece in drawn], 0.0),
        _column(moved, "decode", [(piece.dst, piece.src) for piece in drawn], right),
    )
    bottom = max(_bottom(column) for column in columns)
    return PoolMap(
        title=f"The K/V's last trip: {_what(moved)}",
        summary=moved.totals,
        description=_description(ordered),
        width=right + BOX_WIDTH + 2 * BAND_PAD,
        height=bottom + (24.0 if left_out else 0.0),
        columns=columns,
        arrows=tuple(_arrows(drawn, labels, columns)),
        arrows_left_out=len(left_out),
        rest=_rest(left_out),
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """All that one rank sends to one other: several runs of layers where a stage has several chunks."""

    src: int
    dst: int
    heads: tuple[int, ...]
    layers: tuple[range, ...]
    bytes: int


def _by_pair(pieces: Iterable[KvPiece]) -> list[_Sent]:
    ordered = sorted(pieces, key=lambda piece: (piece.dst, piece.src, piece.layers.start))
    found = []
    for (dst, src), group in groupby(ordered, key=lambda piece: (piece.dst, piece.src)):
        sent = list(group)
        layers = tuple(piece.layers for piece in sent)
        found.append(_Sent(src, dst, sent[0].heads, layers, sum(piece.bytes for piece in sent)))
    return found


def _what(moved: KvHandover) -> str:
    prompt = moved.pools.prefill.token.prompt
    return plural(prompt, "position") if moved.position is None else f"position {moved.position:,}"


def _label(piece: _Sent) -> str:
    parts = (f"GPU {piece.src}", _heads(piece.heads), _layers(piece.layers), format_bytes(piece.bytes))
    return " · ".join(parts)


def _heads(heads: Sequence[int]) -> str:
    return f"head{'s' * (len(heads) > 1)} {short_range(tuple(heads))}" if heads else "latent"


def _layers(runs: tuple[range, ...]) -> str:
    many = sum(map(len, runs)) > 1
    return f"layer{'s' * many} {', '.join(short_range(run) for run in runs)}"


def _rest(pieces: list[_Sent]) -> str:
    if not pieces:
        return ""
    into = plural(len({piece.dst for piece in pieces}), "GPU")
    size = format_bytes(sum(piece.bytes for piece in pieces))
    return f"{plural(len(pieces), 'more piece')} into {into}: {size}"


def _description(pieces: list[_Sent]) -> str:
    rows = [f"to GPU {piece.dst} from {_label(piece)}" for piece in pieces[:MAX_ARROWS]]
    more = len(pieces) - len(rows)
    return "; ".join(rows) + (f"; and {more:,} more pieces." if more else ".")


def _column(moved: KvHandover, pool: str, pairs: list[tuple[int, int]], x: float) -> PoolColumn:
    """A pool's GPUs that are an end of ``pairs`` (own rank, other rank), stage by stage."""
    scenario = moved.pools.prefill if pool == "prefill" else moved.pools.decode
    ports: dict[int, int] = {}
    for own, _ in pairs:
        ports[own] = ports.get(own, 0) + 1
    low = len(ports) > MAX_TALL
    least, gap = (LOW_HEIGHT, LOW_GAP) if low else (BOX_HEIGHT, BOX_GAP)
    bands, boxes, y = [], [], HEADER
    for stage, ranks in groupby(sorted(ports), key=scenario.mesh.stage_of):
        top = y
        y += BAND_HEAD
        for rank in ranks:
            height = max(least, PORT * ports[rank] + (0.0 if low else PORT_PAD))
            keeps = () if low else _keeps(moved, scenario, rank)
            node = f"node {scenario.cluster.node_of(rank):,}"
            boxes.append(KeeperBox(rank, node, keeps, x + BAND_PAD, y, BOX_WIDTH, height))
            y += height + gap
        label = f"Stage {stage}" if scenario.mesh.stages > 1 else ""
        layers = stage_layers_text(scenario, stage)
        bands.append(Band(stage, label, layers, x, top, BOX_WIDTH + 2 * BAND_PAD, y - top))
        y += BAND_GAP
    idle = scenario.mesh.world_size - len({getattr(p, _END[pool]) for p in moved.pieces})
    text = f"{plural(idle, 'more GPU')}: {_IDLE[pool]} nothing" if idle else ""
    fold = Fold(text, x, y, BOX_WIDTH + 2 * BAND_PAD, FOLD_HEIGHT) if text else None
    return PoolColumn(_heading(scenario, pool), x, tuple(bands), tuple(boxes), fold)


def _heading(scenario: Scenario, pool: str) -> tuple[str, str, str]:
    name = scenario.name or ""
    mesh = scenario.mesh
    sizes = " ".join(f"{axis}{mesh.size_of(axis)}" for axis in ("tp", "cp", "pp") if mesh.size_of(axis) > 1)
    dcp = f" dcp{scenario.plan.dcp}" if scenario.plan.dcp > 1 else ""
    place = f"replica {scenario.replica}: {sizes or 'one GPU'}{dcp}"
    short = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return f"{pool.capitalize()}, {plural(mesh.world_size, 'GPU')}", short, place


def _keeps(moved: KvHandover, scenario: Scenario, rank: int) -> tuple[str, str]:
    heads = tuple(stored_heads(scenario, rank))
    if moved.position is not None:
        return _heads(heads), f"position {moved.position:,}"
    return _heads(heads), plural(positions_kept(scenario, rank), "position")


def _bottom(column: PoolColumn) -> float:
    if column.fold is not None:
        return column.fold.y + column.fold.height
    return max((band.y + band.height for band in column.bands), default=HEADER)


def _arrows(
    pieces: list[_Sent], labels: dict[tuple[int, int], str], columns: tuple[PoolColumn, PoolColumn]
) -> list[Arrow]:
    leaves = _ports(columns[0], [(piece.src, piece.dst) for piece in pieces])
    arrives = _ports(columns[1], [(piece.dst, piece.src) for piece in pieces])
    x0, x1 = BOX_WIDTH + BAND_PAD, columns[1].x + BAND_PAD
    largest = max((piece.bytes for piece in pieces), default=1)
    found = []
    for piece in pieces:
        y0, y1 = leaves[piece.src, piece.dst], arrives[piece.dst, piece.src]
        turn, bend = x0 + BAND_PAD + FAN, x0 + BAND_PAD + FAN / 2
        path = f"M{x0:g} {y0:g}C{bend:g} {y0:g} {bend:g} {y1:g} {turn:g} {y1:g}H{x1 - 9:g}"
        width = THIN + (THICK - THIN) * piece.bytes / largest
        label = labels[piece.src, piece.dst]
        found.append(Arrow(piece.src, piece.dst, piece.bytes, label, path, round(width, 2), turn + 6, y1))
    return found


def _ports(column: PoolColumn, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """Height at which each (own rank, other rank) meets its box, in the order of the others."""
    boxes = {box.rank: box for box in column.boxes}
    found = {}
    for own, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
        box, ends = boxes[own], list(group)
        first = box.y + (box.height - PORT * (len(ends) - 1)) / 2
        found.update({pair: first + PORT * place for place, pair in enumerate(ends)})
    return found
