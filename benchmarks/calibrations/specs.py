"""Which corrections each kind of call gets, and how tightly neighbouring grid points are tied."""

from __future__ import annotations

from dataclasses import dataclass, field

FAMILIES = {"h100": "hopper", "h200": "hopper", "b200": "blackwell"}
"""Systems with the same kernels share corrections; each keeps its own scales."""
PLACES = {"h100": 0.0, "h200": 1.0, "b200": 0.0}
"""Coordinate ``sys`` of a system within its family."""

Axis = tuple[str, tuple[float, ...], float]


@dataclass(frozen=True, slots=True)
class Spec:
    """Corrections of a kind: tables of axes (name, grid, tie between neighbours) and their strength.

    ``shared`` names the part of a variant whose rows share tables; ``hopper`` tables exist for the family
    of two systems only. ``kinds`` gives variants a coordinate.
    """

    tables: tuple[tuple[Axis, ...], ...] = ()
    hopper: tuple[tuple[Axis, ...], ...] = ()
    ridge: float = 0.2
    shared: str = "variant"
    least: int = 60
    kinds: tuple[str, ...] = ()
    at_least_peak: tuple[int, ...] = ()
    fixed: dict[str, float] = field(default_factory=dict)
    pools: dict[str, tuple[str, float]] = field(default_factory=dict)
    drops: bool = False


def _axis(name: str, grid: tuple[float, ...], tie: float = 1.0) -> Axis:
    return (name, grid, tie)


SYS = _axis("sys", (0, 1), 2.0)
HEAD_DIM = _axis("d", (12, 14, 15.17, 16, 18), 0.5)
_M, _NK = (0, 4, 5, 6, 7, 8, 9, 10, 12, 15), (5, 7, 9, 11, 13, 16)
_PROMPT, _CONTEXT = (0, 4, 6, 8, 10, 12, 13, 14, 15), (1, 4, 7, 9, 11, 13, 15, 17)
_BATCH_P, _BATCH_D = (0, 2, 4, 6, 8), (0, 2, 4, 6, 8, 10)
_HEADS = (0, 2, 4, 5, 6, 7)
_TOKENS_P = (0, 4, 6, 7, 8, 9, 10, 12, 14, 18)
_PAIR = (0, 1)
_VARIANT = _axis("v", (0, 1, 2), 0.3)
MOE_POOLS = {
    "bfloat16/gated": ("cutlass", 0.0),
    "fp8/gated": ("cutlass", 1.0),
    "w4a16_mxfp4/gated": ("cutlass", 2.0),
    "bfloat16/nongated": ("nongated", 0.0),
    "fp8/nongated": ("nongated", 1.0),
    "nvfp4/nongated": ("nongated", 2.0),
    "nvfp4/gated": ("fp4", 0.0),
    "w4a8_mxfp4_mxfp8/gated": ("fp4", 1.0),
}
"""Formats of one kernel family, which share most of what depends on sizes; other variants stay alone."""

SPECS: dict[str, Spec] = {
    "gemm": Spec(
        ((_axis("m", _M), _axis("n", _NK), _axis("k", _NK)),),
        ((SYS, _axis("m", (0, 6, 8, 10, 15)), _axis("n", (5, 9, 13, 16))),),
        ridge=0.1,
    ),
    "quantize": Spec(
        ((_axis("m", (0, 4, 7, 9, 11, 13, 15)), _axis("k", (5, 8, 11, 13, 16))),),
        ((SYS, _axis("m", (0, 9, 15))),),
        ridge=0.1,
    ),
    "linear_attention": Spec(
        (
            (
                _axis("t", (0, 4, 7, 9, 11, 13, 15, 17, 19)),
                _axis("b", (0, 2, 4, 6, 8, 10)),
                _axis("h", (4, 5, 5.585, 6)),
            ),
        ),
        ((SYS, _axis("t", (0, 9, 15, 19))),),
        ridge=0.1,
        least=30,
    ),
    "prefill_attention": Spec(
        (
            (_axis("l", (0, 4, 6, 8, 9, 10, 11, 12, 13, 14)), _axis("bh", (0, 3, 6, 9, 11, 14))),
            (_axis("l", (0, 6, 8, 10, 12, 14)), HEAD_DIM, _axis("dtype", (0, 1, 2), 0.3)),
            (_axis("g", (0, 1, 2, 3, 5, 6.6)), _axis("l", (0, 9, 14)), _axis("dtype", (0, 1, 2), 0.3)),
            (_axis("w", (0, 1, 4, 5, 6, 7, 9, 11), 0.3), HEAD_DIM),
            (_axis("bh", (0, 3, 6, 9, 11, 14)), HEAD_DIM),
        ),
        ((SYS, _axis("l", (0, 6, 10, 14)), _axis("bh", (0, 6, 10, 14))),),
    ),
    "decode_attention": Spec(
        (
            (
                _axis("l", (0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17)),
                _axis("blocks", (0, 4, 6, 7, 8, 9, 10, 11, 12, 14, 17)),
                _axis("dtype", _PAIR, 0.2),
            ),
            (_axis("l", (0, 7, 9, 12, 17)), HEAD_DIM, _axis("dtype", _PAIR, 0.3)),
            (
                _axis("g", (0, 1, 2, 3, 4, 5, 7), 0.4),
                _axis("l", (0, 7, 9, 12, 17)),
                _axis("dtype", _PAIR, 0.3),
            ),
            (_axis("g", (0, 1, 2, 3, 4, 5, 7), 0.5), _axis("blocks", (0, 4, 6, 8, 10, 14, 17))),
            (_axis("w", (0, 1, 3, 5, 7, 9), 0.3), _axis("blocks", (0, 4, 7, 10, 14, 17))),
            (_axis("blocks", (0, 5, 7, 9, 11, 14, 17)), HEAD_DIM, _axis("dtype", _PAIR, 0.3)),
        ),
        ((SYS, _axis("l", (0, 7, 9, 12, 17)), _axis("blocks", (0, 6, 8, 11, 17))),),
        shared="first",
    ),
    "mla_prefill": Spec(
        (
            (_axis("l", _PROMPT), _axis("b", _BATCH_P), _axis("h", (0, 3, 5, 7))),
            (_axis("format", (0, 1, 2), 0.2), _axis("t", _TOKENS_P), _axis("h", (0, 4, 6, 7))),
        ),
        ((SYS, _axis("l", (0, 6, 10, 12, 15)), _axis("b", (0, 4, 8))),),
        shared="all",
    ),
    "mla_decode": Spec(
        (
            (_axis("l", _CONTEXT), _axis("b", (0, 2, 4, 5, 6, 7, 8, 9, 10)), _axis("h", (0, 3, 4, 5, 6, 7))),
            (_axis("format", (0, 1, 2), 0.2), _axis("t", _BATCH_D), _axis("h", _HEADS)),
            (_axis("kv", _PAIR, 0.2), _axis("l", _CONTEXT), _axis("b", _BATCH_D)),
        ),
        ((SYS, _axis("l", (1, 9, 13, 17)), _axis("b", (0, 4, 7, 10))),),
        shared="all",
    ),
    "dsa_prefill": Spec(
        (
            (
                _axis("model", _PAIR, 0.3),
                _axis("l", (0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15)),
                _axis("b", _BATCH_P),
            ),
            (_axis("model", _PAIR, 0.3), _axis("h", _HEADS), _axis("l", (0, 6, 8, 10, 11, 12, 13, 15))),
            (_axis("format", (0, 1, 2), 0.2), _axis("t", _TOKENS_P), _axis("h", _HEADS)),
            (_axis("model", _PAIR, 0.3), _axis("t", _TOKENS_P), _axis("h", _HEADS)),
            (_axis("past", _PAIR, 0.3), _axis("l", (0, 4, 8, 10, 11, 12, 13, 15))),
        ),
        ((SYS, _axis("l", (0, 6, 9, 11, 12, 13, 15)), _axis("b", _BATCH_P)),),
        shared="all",
    ),
    "dsa_decode": Spec(
        (
            (_axis("model", _PAIR, 0.3), _axis("l", (1, 7, 10, 11, 12, 13, 15, 17)), _axis("b", _BATCH_D)),
            (_axis("model", _PAIR, 0.3), _axis("h", (0, 3, 5, 6, 7)), _axis("l", (1, 7, 10, 12, 15, 17))),
            (_axis("format", (0, 1, 2), 0.2), _axis("t", _BATCH_D), _axis("h", _HEADS)),
            (_axis("model", _PAIR, 0.3), _axis("t", (0, 2, 4, 5, 6, 7, 8, 10)), _axis("h", _HEADS)),
        ),
        ((SYS, _axis("l", (1, 10, 13, 17)), _axis("b", (0, 5, 8, 10))),),
        shared="all",
    ),
    "moe": Spec(
        (
            (_axis("t", (0, 3, 5, 7, 9, 11, 13, 14)), _axis("w", (16, 19, 21, 23, 25, 28))),
            (_axis("x", (-2, 0, 2, 4, 5, 6, 7, 8, 10, 12, 14)), _axis("hit", (0, 2, 4, 6, 8))),
            (_axis("skew", (0, 1, 2), 0.4), _axis("t", (0, 4, 7, 10, 14)), _axis("ep", (0, 1, 2, 3, 5, 8))),
            (_axis("i", (4, 6, 7, 8, 9, 10, 12, 14)), _axis("x", (0, 4, 7, 9, 12))),
            (_axis("h", (10, 11, 12, 12.6, 13)), _axis("x", (0, 4, 7, 10))),
            (_axis("e", (3, 4, 5, 7, 8, 9)), _axis("ep", (0, 2, 4, 8))),
            (_VARIANT, _axis("t", (0, 4, 7, 10, 14)), _axis("w", (16, 19, 22, 25, 28))),
            (_VARIANT, _axis("x", (-2, 0, 2, 4, 6, 8, 10, 14)), _axis("hit", (0, 3, 6, 8))),
            (_VARIANT, _axis("i", (4, 6, 7, 8, 9, 10, 12, 14))),
        ),
        ((SYS, _axis("t", (0, 7, 14)), _axis("w", (16, 22, 28))),),
        ridge=1.0,
        pools=MOE_POOLS,
        drops=True,
    ),
    "custom_all_reduce": Spec(
        ((_axis("n", (1, 2, 3), 0.5), _axis("s", (8, 12, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30))),),
        ((SYS, _axis("s", (8, 16, 20, 24, 30))),),
        ridge=0.02,
        least=20,
        at_least_peak=(2,),
    ),
    "nccl": Spec(
        (
            (
                _axis("kind", (0, 1, 2, 3), 0.5),
                _axis("n", (1, 2, 3), 1.0),
                _axis("s", (9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 24, 25, 27, 29)),
            ),
        ),
        ((SYS, _axis("kind", (0, 1, 2, 3), 0.5), _axis("s", (9, 13, 17, 19, 21, 23, 25, 29))),),
        ridge=0.05,
        shared="all",
        kinds=("all_reduce", "all_gather", "reduce_scatter", "all_to_all"),
        at_least_peak=(2,),
    ),
    "deepep": Spec(
        ((_axis("t", (0, 2, 4, 6, 8, 10, 13, 17)), _axis("nodes", (0, 1, 3), 0.5)),),
        ridge=0.2,
        least=10,
        at_least_peak=(2, 3),
    ),
}
