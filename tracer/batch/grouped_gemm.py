"""One matmul an expert in a loop, against one grouped GEMM for all of them: launches, tiles and waves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.errors import whole_number


@dataclass(frozen=True, slots=True)
class GemmWork:
    """How one matmul a expert fills the GPU: launches, output tiles, waves of tiles over the SMs.

    ``waves`` is the time in tiles of the busiest SM; ``fill`` the share of SM time in the waves that
    works on a tile; ``useful_rows`` the share of the tiles' rows that hold a token.
    """

    launches: int
    tiles: int
    waves: int
    fill: float
    useful_rows: float


def grouped_against_loop(
    counts: Sequence[int], columns: int, *, tile_rows: int = 128, tile_columns: int = 128, sms: int = 132
) -> tuple[GemmWork, GemmWork]:
    """(loop, grouped) for experts with ``counts`` ``[experts]`` rows and ``columns`` output columns.

    The loop launches one GEMM an expert that has tokens and waits for each; the grouped GEMM launches
    once and deals all tiles out together. 132 SMs are an H100's.

    Raises:
        ConfigError: for sizes below 1.
    """
    for name, value in (("columns", columns), ("tile_rows", tile_rows), ("sms", sms)):
        whole_number(name, value)
    whole_number("tile_columns", tile_columns)
    across = -(-columns // tile_columns)
    busy = [-(-rows // tile_rows) * across for rows in counts if rows > 0]
    total = sum(busy)
    useful = sum(counts) * across / (total * tile_rows) if total else 0.0
    loop_waves, grouped_waves = sum(-(-tiles // sms) for tiles in busy), -(-total // sms)
    return (
        GemmWork(len(busy), total, loop_waves, _fill(total, loop_waves, sms), useful),
        GemmWork(int(total > 0), total, grouped_waves, _fill(total, grouped_waves, sms), useful),
    )


def _fill(tiles: int, waves: int, sms: int) -> float:
    return tiles / (waves * sms) if waves else 0.0
