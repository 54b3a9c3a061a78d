"""Picks in Parquet: one row per token, a list of expert ids in a column; one file per layer.

FLAME-MoE's traces have this form (``layer_NN.parquet`` with a column ``indices``, arXiv 2505.20225). pyarrow
decodes; the files are read by row groups, for a whole column of a long trace need not fit in memory.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.npy import MAX_UNPACKED_BYTES
from tracer.batch.picks.source import InMemory, Readable
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.picks.source import Picks

COLUMNS = ("indices", "picks", "topk_ids", "routed_experts", "experts")
MAX_GROUP_PICKS = 1 << 27


@dataclass(frozen=True)
class ParquetPicks:
    """Picks of Parquet files, one per layer in the order of ``paths``, read by row groups.

    Raises:
        ConfigError: for files without such a column, of different lengths, or when pyarrow is missing.
    """

    paths: tuple[Readable, ...]
    column: str
    edges: tuple[tuple[int, ...], ...]
    top_k: int
    _last: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @classmethod
    def open(cls, path: Readable, column: str | None = None) -> ParquetPicks:
        """A file, or a folder of files: sorted by the numbers in their names."""
        paths: tuple[Readable, ...] = (path,)
        if isinstance(path, Path) and isdir(path):
            inside: list[Path] = sorted(path.glob("*.parquet"), key=_number)
            paths = tuple(inside)
        if not paths:
            raise ConfigError("picks", str(path), "holds no .parquet file", "give one file a layer")
        edges, width, name = [], 0, column
        for each in paths:
            file = _open(each)
            name = name or _find_column(each, file.schema_arrow.names)
            rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            edges.append(tuple(int(edge) for edge in np.cumsum([0, *rows])))
            width = width or _width(each, file, name)
            if max(rows, default=0) * width > MAX_GROUP_PICKS:
                raise ConfigError(
                    "picks", each.name, f"has a row group of {max(rows):,} rows", "write smaller row groups"
                )
        if len({edge[-1] for edge in edges}) > 1:
            counts = [edge[-1] for edge in edges]
            raise ConfigError("picks", counts, "must have as many tokens in each layer", "record one batch")
        return cls(paths, name or COLUMNS[0], tuple(edges), width)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_last"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _last=threading.local())

    @property
    def layers(self) -> int:
        """Files, one per layer."""
        return len(self.paths)

    @property
    def tokens(self) -> int:
        """Rows of each file."""
        return self.edges[0][-1]

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """Rows ``start`` to ``stop`` of a layer's file ``[n, k]``."""
        edges = np.array(self.edges[layer])
        first = int(np.searchsorted(edges, start, "right")) - 1
        last = int(np.searchsorted(edges, stop, "left"))
        parts = []
        for group in range(first, last):
            picks, low = self._group(layer, group), int(edges[group])
            parts.append(picks[max(0, start - low) : stop - low])
        return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _group(self, layer: int, group: int) -> Picks:
        """One row group; a thread keeps the last it read."""
        kept: tuple[int, int, Picks] | None = getattr(self._last, "kept", None)
        if kept is None or kept[:2] != (layer, group):
            with _refusing(self.paths[layer]):
                table = _open(self.paths[layer]).read_row_group(group, columns=[self.column])
            kept = (layer, group, self._unlisted(layer, group, table.column(0)))
            self._last.kept = kept
        return kept[2]

    def _unlisted(self, layer: int, group: int, column: Any) -> Picks:
        """A column of lists as ``[rows, k]``."""
        values = column.combine_chunks()
        lengths = values.value_lengths().to_numpy(zero_copy_only=False)
        if values.null_count or (lengths != self.top_k).any():
            row = int(np.argmax(lengths != self.top_k)) + self.edges[layer][group]
            raise ConfigError(
                f"picks[{layer}, {row}]",
                self.paths[layer].name,
                f"must list {self.top_k} picks",
                "mend the row",
            )
        flat = values.flatten()
        if flat.null_count:
            raise ConfigError(
                "picks", self.paths[layer].name, "has a null among the picks", "write -1 for none"
            )
        found: Picks = flat.to_numpy(zero_copy_only=False).reshape(len(lengths), self.top_k)
        return found


def _number(path: Path) -> tuple[tuple[int, ...], str]:
    return tuple(int(digits) for digits in re.findall(r"\d+", path.stem)), path.name


def _open(path: Readable) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ConfigError(
            "picks",
            "pyarrow",
            "is not installed, and Parquet is read with it",
            "pip install 'tokentrip[census]'",
        ) from error
    with _refusing(path):
        if isinstance(path, Path):
            return parquet.ParquetFile(path)
        file = parquet.ParquetFile(pa.BufferReader(path.data))
    _check_values(file, path)
    return file


def _check_values(file: Any, sent: InMemory) -> None:
    """A short file may stand for very many values: they are counted before any is read."""
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    values = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    if values * 8 > MAX_UNPACKED_BYTES:
        rule = f"holds {values:,} values, more than {MAX_UNPACKED_BYTES // 8:,}"
        raise ConfigError("picks", sent.name, rule, "send fewer tokens")


@contextmanager
def _refusing(path: Readable) -> Iterator[None]:
    """Turn what the Parquet reader says of a broken file into a refusal."""
    try:
        yield
    except ConfigError:
        raise
    except (OSError, ValueError, MemoryError, NotImplementedError) as error:
        raise ConfigError("picks", str(path), f"cannot be read: {error}", "give a Parquet file") from error


def _find_column(path: Readable, names: list[str]) -> str:
    for name in COLUMNS:
        if name in names:
            return name
    raise ConfigError(
        "picks",
        names,
        f"of {path.name} names no column of picks",
        f"call it {COLUMNS[0]!r}, or give --column",
    )


def _width(path: Readable, file: Any, column: str) -> int:
    """Picks a token, from the first row."""
    import pyarrow as pa

    if column not in file.schema_arrow.names:
        raise ConfigError("column", column, f"is not in {path.name}", f"try {file.schema_arrow.names[0]!r}")
    kind = file.schema_arrow.field(column).type
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not listed or not pa.types.is_integer(kind.value_type):
        raise ConfigError("column", f"{column}: {kind}", "must be lists of integers", "give --column")
    with _refusing(path):
        for batch in file.iter_batches(1, columns=[column]):
            first = batch.column(0)[0]
            if first.is_valid and len(first):
                return len(first)
            raise ConfigError("picks", path.name, "lists no picks in its first row", "write -1 for none")
    raise ConfigError("picks", path.name, "has no rows", "record some tokens")
