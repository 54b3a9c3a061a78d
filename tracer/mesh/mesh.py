"""Two factorisations of the same ranks: the dense view (tp cp dp pp) and the expert view (etp ep edp).

A stage is the ranks that share a pp coordinate, sorted ascending; the expert view is laid over that
list, so pp always comes from the dense view (Megatron's MoE Parallel Folding, in the words of the
counting rules). Every question about one rank is arithmetic on a few integers: a mesh of 10^9 ranks
answers as fast as one of 32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from tracer.display import mime_bundle
from tracer.errors import ConfigError, nearest, one_of, whole_number
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES, Axis, parse_order
from tracer.mesh.checks import expert_sizes, grid_of_order
from tracer.mesh.grid import RankGrid, RankGroup, check_listable

if TYPE_CHECKING:
    from tracer.mesh.grid import IntArray


def check_megatron(mesh: Mesh, expert_names: tuple[str, ...]) -> None:
    """Refuse pp groups that differ between Megatron's two full orders.

    Both orders run over the whole world; an expert order that does not place pp follows the dense
    order (before edp when pp stands before dp there, as ``--use-tp-pp-dp-mapping`` does, else last).
    pp groups are equal exactly when the stride of pp is.
    """
    if "pp" not in expert_names:
        dense_names = mesh.dense.names
        inside = dense_names.index("pp") < dense_names.index("dp")
        cut = expert_names.index("edp") if inside and "edp" in expert_names else len(expert_names)
        expert_names = (*expert_names[:cut], "pp", *expert_names[cut:])
    stride = 1
    for name in expert_names[: expert_names.index("pp")]:
        stride *= mesh.size_of(name)
    dense_stride = mesh.dense.stride_of(Axis.PP)
    if mesh.stages > 1 and stride != dense_stride:
        raise ConfigError(
            "mesh.strict",
            "megatron",
            f"needs the same pp groups in both views, but pp strides {dense_stride} in the dense order "
            f"{'-'.join(mesh.dense.names)} and {stride} in the expert order {'-'.join(expert_names)}",
            "put pp last in the order, or pick sizes for which etp·ep equals the ranks inside pp",
        )


REPLICA = "replica"
DISPATCH = "dispatch"
GROUP_NAMES = (*DENSE_AXES, *EXPERT_AXES, REPLICA)
_NAMED_SETS = {REPLICA: ("tp", "cp"), DISPATCH: ("etp", "ep")}


@dataclass(frozen=True, slots=True)
class StageGroup(Sequence[int]):
    """Members of an expert-view group: positions in a stage's sorted list, shown as ranks."""

    mesh: Mesh
    stages: tuple[int, ...]
    positions: RankGroup

    def __len__(self) -> int:
        return len(self.stages) * len(self.positions)

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        if not 0 <= index < len(self):
            raise IndexError(f"group index {index} out of range for {len(self)} members")
        stage, place = divmod(index, len(self.positions))
        return self.mesh.rank_in_stage(self.stages[stage], self.positions[place])

    def __iter__(self) -> Iterator[int]:
        return (self.mesh.rank_in_stage(stage, p) for stage in self.stages for p in self.positions)

    def __contains__(self, rank: object) -> bool:
        if not isinstance(rank, int) or not 0 <= rank < self.mesh.world_size:
            return False
        return self.mesh.stage_of(rank) in self.stages and self.mesh.position(rank) in self.positions


Group = RankGroup | StageGroup


@dataclass(frozen=True, slots=True)
class Mesh:
    """The dense grid, and the expert grid over each stage's sorted ranks.

    ``tp``, ``cp``, ``dp``, ``pp``, ``etp``, ``ep`` and ``edp`` are the number of ranks along each axis.

    >>> mesh = Mesh.build(tp=2, cp=2, dp=4, pp=2, ep=16)
    >>> list(mesh.group(11, "cp")), list(mesh.group(11, "replica"))
    ([9, 11], [8, 9, 10, 11])
    >>> mesh.coordinates(27)
    {'tp': 1, 'cp': 1, 'dp': 2, 'pp': 1, 'etp': 0, 'ep': 11, 'edp': 0}
    """

    dense: RankGrid
    expert: RankGrid
    expert_order: str
    strict: str | None = None
    tp: int = field(init=False, repr=False, compare=False)
    cp: int = field(init=False, repr=False, compare=False)
    dp: int = field(init=False, repr=False, compare=False)
    pp: int = field(init=False, repr=False, compare=False)
    etp: int = field(init=False, repr=False, compare=False)
    ep: int = field(init=False, repr=False, compare=False)
    edp: int = field(init=False, repr=False, compare=False)
    _pp_stride: int = field(init=False, repr=False, compare=False)
    _expert_strides: tuple[int, int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for axis in (*DENSE_AXES, *EXPERT_AXES):
            object.__setattr__(self, axis, self.size_of(axis))
        strides = tuple(self.expert.stride_of(axis) for axis in EXPERT_AXES)
        object.__setattr__(self, "_pp_stride", self.dense.stride_of(Axis.PP))
        object.__setattr__(self, "_expert_strides", strides)

    @classmethod
    def build(
        cls,
        order: str = "tp-cp-dp-pp",
        *,
        tp: int = 1,
        cp: int = 1,
        dp: int = 1,
        pp: int = 1,
        ep: int = 1,
        etp: int = 1,
        edp: int | None = None,
        expert_order: str = "etp-ep-edp",
        strict: str | None = None,
    ) -> Mesh:
        """A mesh from sizes and orders; ``edp`` is what the stage leaves over when not given.

        ``strict="megatron"`` also lays both full orders over the world, as Megatron does, and refuses
        pp groups that differ; ``expert_order`` may then name pp.

        Raises:
            ConfigError: for sizes that don't multiply up, unknown or repeated axes, an axis of size
                above 1 that the order leaves out, or pp groups that differ under ``strict``.
        """
        sizes = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
        for name, size in sizes.items():
            whole_number(f"mesh.{name}", size)
        dense = grid_of_order("mesh.order", order, sizes, DENSE_AXES)
        stage_size = dense.size // pp
        found = expert_sizes(stage_size, etp=etp, ep=ep, edp=edp)
        allowed = (*EXPERT_AXES, "pp") if strict is not None else EXPERT_AXES
        names = parse_order("mesh.expert_order", expert_order, allowed)
        inner = "-".join(name for name in names if name != "pp")
        mesh = cls(dense, grid_of_order("mesh.expert_order", inner, found, EXPERT_AXES), expert_order, strict)
        if strict is not None:
            one_of("mesh.strict", strict, ("megatron",))
            check_megatron(mesh, names)
        return mesh

    def __str__(self) -> str:
        sizes = " ".join(f"{axis}{self.size_of(axis)}" for axis in (*DENSE_AXES, *EXPERT_AXES))
        return f"{self.world_size:,} ranks: {sizes}, order {'-'.join(self.dense.names)}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows: each axis with its size and the group of rank 0."""
        rows = [
            (axis, self.size_of(axis), " ".join(map(str, list(islice(iter(self.group(0, axis)), 16)))))
            for axis in (*DENSE_AXES, *EXPERT_AXES)
        ]
        return mime_bundle("mesh", self, ("axis", "size", "group of rank 0 (first 16)"), rows)

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.dense.size

    @property
    def stage_size(self) -> int:
        """Ranks in one pipeline stage."""
        return self.expert.size

    @property
    def stages(self) -> int:
        """Number of pipeline stages."""
        return self.pp

    @property
    def replica_size(self) -> int:
        """Ranks of one stage that serve a prompt together: tp x cp."""
        return self.tp * self.cp

    @property
    def dispatch_size(self) -> int:
        """Ranks of a dispatch group: etp x ep."""
        return self.etp * self.ep

    def size_of(self, axis: str) -> int:
        """Number of ranks along an axis of either view."""
        return (self.expert if axis in EXPERT_AXES else self.dense).size_of(axis)

    def stage_of(self, rank: int) -> int:
        """Pp coordinate of a rank."""
        return rank // self._pp_stride % self.pp

    def position(self, rank: int) -> int:
        """Place of a rank in its stage's ascending list."""
        stride = self._pp_stride
        return rank // (stride * self.pp) * stride + rank % stride

    def rank_in_stage(self, stage: int, position: int) -> int:
        """Rank at a place of a stage's ascending list; the inverse of :meth:`position`."""
        outer, inner = divmod(position, self._pp_stride)
        return (outer * self.pp + stage) * self._pp_stride + inner

    def expert_rank(self, stage: int, *, etp: int, ep: int, edp: int) -> int:
        """Rank with the given expert coordinates in a stage."""
        etp_stride, ep_stride, edp_stride = self._expert_strides
        return self.rank_in_stage(stage, etp * etp_stride + ep * ep_stride + edp * edp_stride)

    def expert_coordinate(self, rank: int, axis: str) -> int:
        """Coordinate of a rank along an expert axis; the rank is not checked."""
        return self.expert.coordinate(self.position(rank), axis)

    def coordinates(self, rank: int) -> dict[str, int]:
        """All seven coordinates of a rank.

        Raises:
            ConfigError: when the rank is outside the mesh.
        """
        found = self.dense.coordinates(rank) | self.expert.coordinates(self.position(rank))
        return {name: found[name] for name in (*DENSE_AXES, *EXPERT_AXES)}

    def coordinates_of(self, ranks: IntArray) -> dict[str, IntArray]:
        """All seven coordinates of an array of ranks, any shape; one array of that shape an axis."""
        stride = self.dense.stride_of(Axis.PP)
        dense = self.dense.coordinates_of(ranks)
        return dense | self.expert.coordinates_of(ranks // (stride * self.stages) * stride + ranks % stride)

    def rank(self, **coordinates: int) -> int:
        """Rank of a full set of dense coordinates (``tp``, ``cp``, ``dp``, ``pp``)."""
        return self.dense.rank(coordinates)

    def moved(self, rank: int, axis: str, coordinate: int) -> int:
        """The rank whose dense coordinate along ``axis`` is ``coordinate``, all others as ``rank``'s."""
        return rank + (coordinate - self.dense.coordinate(rank, axis)) * self.dense.stride_of(axis)

    def group(self, rank: int, axes: str | Iterable[str]) -> Group:
        """The group of a rank along an axis, a set of axes, ``"replica"`` or ``"dispatch"``.

        A set may hold dense axes, or expert axes with or without pp.

        Raises:
            ConfigError: for unknown axes, or dense and expert axes in one set.
        """
        names = _axis_names(axes)
        self.dense.check_rank(rank)
        if not set(names) & set(EXPERT_AXES):
            return self.dense.group(rank, names)
        stages = tuple(range(self.stages)) if "pp" in names else (self.stage_of(rank),)
        return StageGroup(
            self, stages, self.expert.group(self.position(rank), [n for n in names if n != "pp"])
        )

    def groups(self, axes: str | Iterable[str]) -> IntArray:
        """Every group along ``axes`` (as for :meth:`group`), as an array ``[groups, members]`` of ranks.

        Raises:
            ConfigError: as :meth:`group`, and above ``MAX_LISTED_RANKS`` ranks.
        """
        names = _axis_names(axes)
        if not set(names) & set(EXPERT_AXES):
            return self.dense.groups(names)
        check_listable(self.world_size)
        positions = self.expert.groups([name for name in names if name != "pp"])
        ranks = self.stage_lists()[:, positions]
        if "pp" in names:
            ranks = ranks.transpose(1, 0, 2)
            return ranks.reshape(len(positions), -1)
        return ranks.reshape(-1, positions.shape[1])

    def stage_lists(self) -> IntArray:
        """Every stage's ascending ranks, as an array ``[stages, stage size]``."""
        return self.dense.groups([name for name in self.dense.names if name != "pp"])


def _axis_names(axes: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(axes, str):
        axes = _NAMED_SETS.get(axes, (axes,))
    names = tuple(str(name) for name in axes)
    known = (*DENSE_AXES, *EXPERT_AXES)
    for name in names:
        if name not in known:
            raise ConfigError("axis", name, "is not an axis", nearest(name, [*known, *_NAMED_SETS]))
    if set(names) & set(EXPERT_AXES) and set(names) & {"tp", "cp", "dp"}:
        raise ConfigError(
            "axes",
            "-".join(names),
            "mixes the dense view and the expert view",
            "take axes of one view (pp goes with both)",
        )
    return names
