"""How many parameters a model has, how many a token uses, and the bytes they are stored in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tracer.display import left, right, text_table
from tracer.model.layers import MoeFfn
from tracer.model.spec import ModelSpec
from tracer.model.weight_format import WeightFormat, stored_bytes
from tracer.model.weights import WeightMatrix, WeightPart, ffn_matrices, weight_matrices

_FORMAT_FIELDS = {
    WeightPart.ATTENTION: "attention_weights",
    WeightPart.INDEXER: "attention_weights",
    WeightPart.LINEAR: "attention_weights",
    WeightPart.DENSE: "dense_weights",
    WeightPart.SHARED: "shared_weights",
    WeightPart.EXPERTS: "expert_weights",
}


class PartCount(NamedTuple):
    """One part of the model: parameters in all, those one token uses, and bytes in store."""

    part: WeightPart
    total: int
    active: int
    weight_bytes: int


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """The parameters of a model by part; ``print`` shows the table and what it leaves out.

    Multi-token-prediction layers are in none of the parts. ``active`` is what one token uses,
    embedding and output head included.
    ``weight_bytes`` has the scales of block formats in it (``weight_format.stored_bytes``).
    """

    name: str | None
    parts: tuple[PartCount, ...]
    left_out: tuple[str, ...]

    @property
    def total(self) -> int:
        """Parameters in all."""
        return sum(each.total for each in self.parts)

    @property
    def active(self) -> int:
        """Parameters one token uses."""
        return sum(each.active for each in self.parts)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights in store."""
        return sum(each.weight_bytes for each in self.parts)

    def of(self, part: WeightPart | str) -> PartCount:
        """The count of one part; zeros for a part the model does not have."""
        found = [each for each in self.parts if each.part == part]
        return found[0] if found else PartCount(WeightPart(part), 0, 0, 0)

    def __str__(self) -> str:
        """The table, a line a part."""
        columns = (
            left("part", 18, gap=0),
            right("parameters", 20, gap=0),
            right("active", 18, gap=0),
            right("bytes", 20, gap=0),
        )
        rows = [(str(p.part), f"{p.total:,}", f"{p.active:,}", f"{p.weight_bytes:,}") for p in self.parts]
        rows += [("all", f"{self.total:,}", f"{self.active:,}", f"{self.weight_bytes:,}")]
        lines = text_table(columns, rows)
        left_out = f"left out: {'; '.join(self.left_out)}" if self.left_out else "left out: nothing"
        return "\n".join([*lines, left_out])


def count_parameters(spec: ModelSpec, unstated: WeightFormat = WeightFormat.BF16) -> ParameterCount:
    """Parameters and bytes of ``spec`` by part; ``unstated`` is the storage of parts that state none.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    matrices = weight_matrices(spec)
    parts = [part for part in WeightPart if any(matrix.part == part for matrix in matrices)]
    counts = tuple(
        _count(spec, part, [each for each in matrices if each.part == part], unstated) for part in parts
    )
    return ParameterCount(spec.name, counts, spec.left_out)


def part_format(
    spec: ModelSpec, part: WeightPart, unstated: WeightFormat = WeightFormat.BF16
) -> WeightFormat:
    """How a part's matrices are stored: by its own ``*_weights``, else ``weights``, else ``unstated``."""
    own: WeightFormat | None = getattr(spec, _FORMAT_FIELDS[part]) if part in _FORMAT_FIELDS else None
    return own or spec.weights or unstated


def expert_parameters(spec: ModelSpec) -> int:
    """Parameters of one routed expert of one layer, biases apart: 3 x hidden x expert_hidden if gated."""
    return sum(matrix.elements for matrix in _one_expert(spec))


def expert_bytes(spec: ModelSpec, unstated: WeightFormat = WeightFormat.BF16) -> int:
    """Bytes of one routed expert of one layer in store."""
    stored = part_format(spec, WeightPart.EXPERTS, unstated)
    return sum(stored_bytes(stored, matrix.rows, matrix.columns) for matrix in _one_expert(spec))


def _one_expert(spec: ModelSpec) -> list[WeightMatrix]:
    """The matrices of one routed expert, of the first layer that has experts."""
    why = "size an expert"
    hidden, width, gated = spec.need("hidden", why), spec.need("expert_hidden", why), spec.gated
    first = next((kind.feed_forward for kind in spec.layer_kinds if kind.is_moe), None)
    if isinstance(first, MoeFfn):
        hidden, width, gated = first.latent or hidden, first.width, first.gated
    return list(ffn_matrices(WeightPart.EXPERTS, hidden, width, 1, 1, gated=gated))


def format_in(
    spec: ModelSpec, matrix: WeightMatrix, layer: int, unstated: WeightFormat = WeightFormat.BF16
) -> WeightFormat:
    """How a matrix is stored in a layer (numbered from 1; 0 for one outside the layers)."""
    found = part_format(spec, matrix.part, unstated)
    for each in spec.stored:
        if (each.part, each.matrix) == (matrix.part, matrix.name) and (
            not each.layers or layer in each.layers
        ):
            found = each.format
    return found


def matrix_formats(
    spec: ModelSpec, matrix: WeightMatrix, unstated: WeightFormat = WeightFormat.BF16
) -> dict[WeightFormat, int]:
    """How the copies of a matrix are stored: format -> copies in that format."""
    layers = [layer for kind in matrix.kinds for layer in spec.kinds()[kind][1]]
    if not layers or not any(each.layers for each in spec.stored):
        return {format_in(spec, matrix, 0, unstated): matrix.copies}
    counts: dict[WeightFormat, int] = {}
    for layer in layers:
        stored = format_in(spec, matrix, layer, unstated)
        counts[stored] = counts.get(stored, 0) + matrix.copies // len(layers)
    return counts


def _count(
    spec: ModelSpec, part: WeightPart, matrices: Iterable[WeightMatrix], unstated: WeightFormat
) -> PartCount:
    """Sum the matrices of a part."""
    total = active = weight_bytes = 0
    for matrix in matrices:
        total += matrix.copies * matrix.elements
        active += matrix.used * matrix.elements
        for stored, copies in matrix_formats(spec, matrix, unstated).items():
            weight_bytes += copies * stored_bytes(stored, matrix.rows, matrix.columns)
    return PartCount(part, total, active, weight_bytes)
