"""The picture of a trip as plain data: what stands where, and what each hop moves. Lengths are pixels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuBox:
    """One GPU of a drawn line. ``tint`` numbers its replica's colour; ``experts`` is a short label."""

    rank: int
    x: float
    y: float
    width: float
    height: float
    stage: int
    replica: int
    tint: int
    experts: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the grid: a node, or one stretch of an NVLink domain that wraps."""

    label: str
    y: float
    height: float
    gpus: tuple[GpuBox, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows that are not drawn one by one, as a thin line with words."""

    text: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Band:
    """A pipeline stage: the box behind its GPUs."""

    stage: int
    label: str
    layers: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Rail:
    """A column: the GPUs with the same index in every NVLink domain."""

    label: str
    x: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Seat:
    """A GPU in its domain: ``place`` is its index there, its rail."""

    rank: int
    place: int
    stage: int
    tint: int
    experts: str


@dataclass(frozen=True, slots=True)
class Domain:
    """An NVLink domain with its GPUs, or without them ``count`` domains in a row that no token touches.

    ``experts`` says which experts its GPUs hold together, in the first MoE layer of each one's stage.
    """

    first: int
    count: int
    seats: tuple[Seat, ...] = ()
    experts: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """All domains in order; ``size`` is the GPUs that a domain has room for, ``stages`` are their layers."""

    size: int
    domains: tuple[Domain, ...]
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One transfer of a hop: what the table says, and the path that the token takes.

    ``seconds`` is the time at link rate; ``phase`` orders the moves of a hop (0 first); ``on_rail`` is
    False for an InfiniBand transfer that changes column. Of several tokens, what goes over one link in one
    phase and role is one move: ``tokens`` are those it carries, bytes and seconds those of all of them.
    """

    source: int
    destination: int
    payload_bytes: int
    seconds: float
    tier: str
    role: str
    why: str
    phase: int
    on_rail: bool
    path: str
    tokens: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a hop: ``stop`` is one of the six stops of a trip, ``shapes`` are (before, after)."""

    title: str
    stop: str
    what: str
    why: str
    gotcha: str = ""
    shapes: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the token is after a hop: ``dots`` are (rank, state) pairs.

    States: ``home`` (a whole row at home), ``part`` (a TP rank's share of the work), ``copy`` (a row at
    an expert), ``relay``. ``kv_owners`` and ``kv_copies`` are ranks that hold its K/V from this hop on.
    """

    dots: tuple[tuple[int, str], ...]
    kv_owners: tuple[int, ...] = ()
    kv_copies: tuple[int, ...] = ()
    relays: tuple[int, ...] = ()
    newly_touched: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A prediction to make before a hop is shown: one of ``options`` is the ``answer``."""

    ask: str
    options: tuple[str, ...]
    answer: str
    explain: str


@dataclass(frozen=True, slots=True)
class TokenTotals:
    """One of the tokens on the map, with the totals of its own trip; ``index`` is its number."""

    index: int
    replica: int
    position: int
    home: int
    gpus_touched: int
    node_crossings: int
    comm_ops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BusyLink:
    """The link that carries most bytes, and the tokens whose bytes those are."""

    source: int
    destination: int
    tier: str
    payload_bytes: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HopScene:
    """One hop: its place in the trip, its moves, its words, the marks after it and the running totals.

    ``seconds`` is its time at link rate, from the first byte sent to the last received, for these tokens
    alone. ``tokens`` are the indices of those that take it, ``meetings`` are (GPU, tokens) pairs where two or
    more are, ``busiest`` is the busiest link of several tokens. ``marks_of`` has each token's
    marks, in the order of ``Scene.tokens``. Several tokens share collectives: their comm ops are not counted.
    """

    index: int
    layer: int
    stage: int
    kind: str
    axis: str | None
    part: str
    dead: bool
    is_comm_op: bool
    crossings: int
    tokens: tuple[int, ...]
    meetings: tuple[tuple[int, tuple[int, ...]], ...]
    busiest: BusyLink | None
    moves: tuple[Move, ...]
    words: Words
    marks_of: tuple[Marks, ...]
    gpus_touched: int
    node_crossings: int
    comm_ops: int | None
    bytes: int
    note: str = ""
    seconds: float = 0.0
    question: Question | None = None

    @property
    def marks(self) -> Marks:
        """The first token's marks: those of a trip of one."""
        return self.marks_of[0]

    @property
    def newly_touched(self) -> tuple[int, ...]:
        """GPUs that a token touches for the first time in this hop; another may have been there."""
        return tuple(rank for marks in self.marks_of for rank in marks.newly_touched)


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a renderer needs; ``subtitle`` is the mesh in one line, ``summary`` the log's totals.

    ``tokens`` are those on the map, one or more; ``home`` is the first one's. ``busiest`` is the link that
    carries most of several tokens' bytes in the whole trip. ``rows`` are the NVLink domains for a map that
    places them itself, ``row_bytes`` the bytes of a token's row as activations.
    """

    name: str
    subtitle: str
    summary: str
    source: str
    width: float
    height: float
    bands: tuple[Band, ...]
    lines: tuple[Line, ...]
    folds: tuple[Fold, ...]
    rails: tuple[Rail, ...]
    hops: tuple[HopScene, ...]
    home: int
    world_size: int
    domain_word: str
    crossings_by_axis: tuple[tuple[str, int], ...]
    touched: tuple[int, ...]
    replicas: int
    tokens: tuple[TokenTotals, ...]
    busiest: BusyLink | None
    rows: Rows
    row_bytes: int

    @property
    def multi_token(self) -> bool:
        """Whether several tokens share the map: they are then numbered."""
        return len(self.tokens) > 1

    def gpu_boxes(self) -> dict[int, GpuBox]:
        """Drawn GPUs by rank."""
        return {box.rank: box for line in self.lines for box in line.gpus}
