"""How long one call takes: a collective, a GEMM, attention, experts, a dispatch; measured fits first.

Every answer names its basis. Where a GPU was measured, a fit of those measurements answers; another GPU
is answered by the nearest measured one, scaled by the two data sheets. Links between NVLink domains, of
which no collective was measured, are timed at peak. ``error`` is the median relative error seen on rows
(or on a whole system) that the fit had not seen; None where nothing could be held against a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from math import log2
from operator import index
from typing import SupportsIndex, TypeVar

from tracer.errors import ConfigError, finite_number, nearest, whole_number
from tracer.mesh.hardware import Hardware
from tracer.scenario.token import Phase
from tracer.timing.calibration import calls
from tracer.timing.calibration.answer import Estimate, answer, one_after_the_other
from tracer.timing.calibration.attention import DSA_MODELS
from tracer.timing.calibration.experts import Loads, exponent_of
from tracer.timing.calibration.formats import CACHE_DTYPES, GEMM_DTYPES, MODULE_DTYPES, KernelDtype
from tracer.timing.calibration.kernels import DECODE_GDN, PREFILL_GDN
from tracer.timing.calibration.network import CollectiveKind, Direction, ExchangeMode, rails_seconds
from tracer.timing.calibration.systems import known_hardware

MAX_SIZE = 1 << 40
MAX_EXPERTS, MAX_GPUS, MAX_HEAD_DIM = 1 << 14, 1 << 20, 1 << 16
PHASES = tuple(str(phase) for phase in Phase)
MOE_KERNELS = ("gated", "nongated", "min_latency")
NONGATED = {(1024, 512, 22), (2048, 512, 22), (4096, 512, 22), (8192, 512, 22), (2688, 128, 6)}
"""(hidden, experts, top_k) of the measured experts without a gate: Nemotron 3's, squared ReLU."""
MESSAGE_LATENCY_S = 10e-6
"""Assumed for each doubling of NVLink domains in a collective between them: aiconfigurator's point-to-point
latency, which its authors call an observation. No table of such collectives was seen."""

_Word = TypeVar("_Word", bound=StrEnum)


def collective(hardware: Hardware | str, kind: str, gpus: int, nbytes: float, nodes: int = 1) -> Estimate:
    """A collective of ``gpus`` in all, spread evenly over ``nodes``.

    ``nbytes`` is the size that nccl-tests states: the whole vector of an all-reduce, what every GPU holds
    after an all-gather or before a reduce-scatter, what every GPU sends in an all-to-all (its own part
    included). ``custom_all_reduce`` is the one-shot and two-shot kernel of serving engines in a node.

    >>> collective("h100", "all_reduce", 8, 1 << 20).basis
    'measured fit H100 SXM, NCCL 2.29.2'

    Raises:
        ConfigError: for an unknown kind or hardware, or sizes that do not fit.
    """
    gpu, name = _hardware(hardware), _word(CollectiveKind, "collective.kind", kind)
    count = _count("collective.gpus", gpus, most=MAX_GPUS, at_least=2)
    size = _count("collective.nbytes", nbytes)
    spread = _count("collective.nodes", nodes, most=MAX_GPUS)
    if count % spread:
        raise ConfigError("collective.nodes", nodes, f"must divide the {count} GPUs", "try nodes=1")
    domains = _domains(gpu, count, spread)
    if domains == 1:
        return answer(gpu, lambda on: calls.collective_call(on, name, count, size))
    if name is CollectiveKind.CUSTOM_ALL_REDUCE:
        raise ConfigError("collective.nodes", nodes, "must be 1: these kernels stay on NVLink", "try 1")
    return _between_domains(gpu, name, count, size, domains)


def _nodes_per_domain(gpu: Hardware) -> int:
    return gpu.gpus_per_nvlink_domain // gpu.gpus_per_node


def _domains(gpu: Hardware, count: int, nodes: int) -> int:
    """NVLink domains that ``count`` GPUs on ``nodes`` span."""
    domains = -(-nodes // _nodes_per_domain(gpu))
    if count % domains or count // domains > gpu.gpus_per_nvlink_domain:
        rule = f"on {nodes} node(s) do not fit NVLink domains of {gpu.gpus_per_nvlink_domain} GPUs"
        raise ConfigError("collective.gpus", count, rule, f"try nodes={-(-count // gpu.gpus_per_node)}")
    return domains


def _between_domains(gpu: Hardware, kind: CollectiveKind, count: int, size: int, domains: int) -> Estimate:
    """The NVLink part by the fit, the rails at peak; the slower sets the pace."""
    rails = rails_seconds(gpu, kind, count, size, domains)
    latency, inside = MESSAGE_LATENCY_S * log2(domains), count // domains
    if inside == 1:
        return Estimate(rails + latency, f"peak: rails of {gpu.name}, assumed 10 µs steps", None, rails)
    near = answer(gpu, lambda on: calls.collective_call(on, kind, inside, size))
    basis = f"peak: rails of {gpu.name}, assumed 10 µs steps; inside a domain {near.basis}"
    return Estimate(max(near.seconds, rails) + latency, basis, None, max(near.floor_seconds, rails))


def gemm(hardware: Hardware | str, m: int, n: int, k: int, dtype: str) -> Estimate:
    """C[m, n] = A[m, k] · B[k, n]; ``dtype`` is bfloat16, fp8, fp8_block or nvfp4.

    >>> gemm("h100", 4096, 7168, 4096, "bfloat16").seconds < 1e-3
    True

    Raises:
        ConfigError: for a size below 1, or a format that the GPU has no rate for.
    """
    gpu = _hardware(hardware)
    sizes = (_count("gemm.m", m), _count("gemm.n", n), _count("gemm.k", k))
    stored = _word(KernelDtype, "gemm.dtype", dtype, GEMM_DTYPES)
    return answer(gpu, lambda on: calls.gemm_call(on, *sizes, stored))


def attention(
    hardware: Hardware | str,
    phase: str,
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int = 0,
    dtype: str = "bfloat16",
    kv_dtype: str = "bfloat16",
) -> Estimate:
    """An attention core: whole prompts of ``length``, or one new token against ``length`` cached ones.

    ``window`` 0 is none. In decode ``dtype`` plays no part: the measured kernels compute in the cache's.

    Raises:
        ConfigError: for heads that their K/V heads do not divide, or an unknown phase or format.
    """
    gpu, which = _hardware(hardware), _phase("attention.phase", phase)
    sizes = (
        _count("attention.batch", batch),
        _count("attention.length", length),
        _count("attention.heads", heads),
        _count("attention.kv_heads", kv_heads),
        _count("attention.head_dim", head_dim, most=MAX_HEAD_DIM),
    )
    if sizes[2] % sizes[3]:
        raise ConfigError("attention.kv_heads", kv_heads, f"must divide the {heads} heads", f"try {heads}")
    reach = _count("attention.window", window, at_least=0)
    computes = _word(KernelDtype, "attention.dtype", dtype, CACHE_DTYPES)
    cached = _word(KernelDtype, "attention.kv_dtype", kv_dtype, CACHE_DTYPES)
    if which is Phase.DECODE:
        return answer(gpu, lambda on: calls.decode_call(on, *sizes, reach, cached))
    return answer(gpu, lambda on: calls.prefill_call(on, *sizes, reach, computes, cached))


def mla(
    hardware: Hardware | str,
    phase: str,
    batch: int,
    length: int,
    heads: int,
    gemm_dtype: str,
    dtype: str = "bfloat16",
    kv_dtype: str = "bfloat16",
) -> Estimate:
    """DeepSeek-V3's attention block with its projections, on a GPU that holds ``heads`` of the 128.

    ``dtype`` is what attention computes in; only bfloat16 was measured apart from the cache's format.

    Raises:
        ConfigError: for more heads than the model has, or an unknown phase or format.
    """
    gpu, which = _hardware(hardware), _phase("mla.phase", phase)
    _word(KernelDtype, "mla.dtype", dtype, CACHE_DTYPES)
    sizes = (_count("mla.batch", batch), _count("mla.length", length), _count("mla.heads", heads, most=128))
    projects = _word(KernelDtype, "mla.gemm_dtype", gemm_dtype, MODULE_DTYPES)
    cached = _word(KernelDtype, "mla.kv_dtype", kv_dtype, CACHE_DTYPES)
    return answer(gpu, lambda on: calls.mla_call(on, which, *sizes, projects, cached))


def dsa(
    hardware: Hardware | str,
    phase: str,
    batch: int,
    length: int,
    heads: int,
    gemm_dtype: str,
    kv_dtype: str = "bfloat16",
    model: str = "deepseek-ai/DeepSeek-V3.2",
    past: int = 0,
) -> Estimate:
    """The sparse attention block of DeepSeek-V3.2 or GLM-5; prefill may follow ``past`` cached tokens.

    Raises:
        ConfigError: for another model, or an unknown phase or format.
    """
    gpu, which = _hardware(hardware), _phase("dsa.phase", phase)
    sizes = (_count("dsa.batch", batch), _count("dsa.length", length), _count("dsa.heads", heads, most=128))
    projects = _word(KernelDtype, "dsa.gemm_dtype", gemm_dtype, MODULE_DTYPES)
    cached = _word(KernelDtype, "dsa.kv_dtype", kv_dtype, CACHE_DTYPES)
    if model not in DSA_MODELS:
        rule = "is not a measured model with sparse attention"
        raise ConfigError("dsa.model", model, rule, nearest(str(model), list(DSA_MODELS)))
    before = _count("dsa.past", past, at_least=0)
    return answer(gpu, lambda on: calls.dsa_call(on, which, *sizes, projects, cached, model, before))


def linear_attention(
    hardware: Hardware | str, phase: str, batch: int, length: int, heads: int, kernel: str | None = None
) -> Estimate:
    """A gated delta net with ``heads`` value heads on the GPU: its convolution and its recurrence.

    ``length`` is the prompt's, or 1 in decode; ``kernel`` asks for one of the two alone.

    Raises:
        ConfigError: for a kernel of the other phase.
    """
    gpu, which = _hardware(hardware), _phase("linear_attention.phase", phase)
    known = PREFILL_GDN if which is Phase.PREFILL else DECODE_GDN
    if kernel not in (None, *known):
        rule = f"is not a kernel of {which}"
        raise ConfigError("linear_attention.kernel", kernel, rule, nearest(str(kernel), list(known)))
    sequences, tokens = _count("linear_attention.batch", batch), _count("linear_attention.length", length)
    states = _count("linear_attention.heads", heads)
    names = known if kernel is None else (kernel,)
    call = partial(calls.linear_attention_call, batch=sequences, length=tokens, heads=states)
    return one_after_the_other([answer(gpu, partial(call, kernel=name)) for name in names])


def quantize(hardware: Hardware | str, m: int, k: int) -> Estimate:
    """[m, k] activations from BF16 to FP8.

    Raises:
        ConfigError: for a size below 1.
    """
    gpu = _hardware(hardware)
    rows, columns = _count("quantize.m", m), _count("quantize.k", k)
    return answer(gpu, lambda on: calls.quantize_call(on, rows, columns))


def moe(
    hardware: Hardware | str,
    tokens: int,
    hidden: int,
    expert_hidden: int,
    experts: int,
    top_k: int,
    ep: int,
    dtype: str,
    distribution: str,
    tp: int = 1,
    kernel: str | None = None,
    loads: Sequence[float] | None = None,
) -> Estimate:
    """Routed experts on the busiest GPU of ``ep``: routing, grouped GEMMs and the weighted sum.

    ``tokens`` are those of the whole group before dispatch. ``distribution`` is ``balanced`` or
    ``power_law_x``; ``loads`` are picks of every expert in the order of the GPUs that hold them, as a census
    counts them, and take its place. ``tp`` splits each expert's ``expert_hidden``. ``kernel`` is ``gated``
    (three matrices), ``nongated`` (two), or ``min_latency`` (another kernel of Blackwell's NVFP4); None is
    the one that such experts were measured with: ``nongated`` for the sizes of Nemotron 3, else ``gated``.

    Raises:
        ConfigError: for experts that ep does not divide, or more picks than experts.
    """
    gpu = _hardware(hardware)
    total = _count("moe.experts", experts, most=MAX_EXPERTS)
    picks = _count("moe.top_k", top_k, most=total)
    group = _count("moe.ep", ep, most=total)
    if total % group:
        raise ConfigError("moe.ep", ep, f"must divide the {total} experts", "try 1")
    width, split = _count("moe.expert_hidden", expert_hidden), _count("moe.tp", tp, most=MAX_GPUS)
    if width % split:
        raise ConfigError("moe.tp", tp, f"must divide expert_hidden {width}", "try 1")
    if kernel is None:
        kernel = "nongated" if (hidden, total, picks) in NONGATED else "gated"
    if kernel not in MOE_KERNELS:
        raise ConfigError("moe.kernel", kernel, "is not a kernel", nearest(str(kernel), list(MOE_KERNELS)))
    exponent_of(distribution)
    spread = distribution if loads is None else _loads(loads, total)
    stored = _word(KernelDtype, "moe.dtype", dtype)
    sizes = (_count("moe.tokens", tokens), _count("moe.hidden", hidden), width / split, total, picks, group)
    matrices = 2 if kernel == "nongated" else 3
    return answer(gpu, lambda on: calls.moe_call(on, *sizes, stored, spread, kernel, matrices))


def _loads(loads: Sequence[float], experts: int) -> Loads:
    found = tuple(finite_number("moe.loads", each, zero=True) for each in loads)
    if len(found) != experts:
        rule = f"must be the picks of each of the {experts} experts"
        raise ConfigError("moe.loads", f"{len(found)} numbers", rule, "give one for each expert")
    if not sum(found):
        raise ConfigError("moe.loads", "all 0", "must hold a pick", "leave loads out for balanced ones")
    return Loads(found)


def dispatch(
    hardware: Hardware | str,
    mode: str,
    nodes: int,
    gpus_per_node: int,
    tokens: int,
    hidden: int,
    top_k: int,
    experts: int,
    dtype: str,
) -> Estimate:
    """Tokens to their experts by DeepEP's kernels; ``tokens`` per GPU, ``mode`` normal or low_latency.

    The kernel that transmits, as DeepEP's own bandwidths count; in normal mode between nodes a kernel that
    exchanges the counts runs before it (30 to 60 µs on two nodes) and is not in these seconds.

    Raises:
        ConfigError: for experts that the GPUs do not divide.
    """
    setting = (nodes, gpus_per_node, tokens, hidden, top_k, experts, dtype)
    return _exchange(hardware, mode, Direction.DISPATCH, *setting)


def combine(
    hardware: Hardware | str,
    mode: str,
    nodes: int,
    gpus_per_node: int,
    tokens: int,
    hidden: int,
    top_k: int,
    experts: int,
    dtype: str,
) -> Estimate:
    """Results back from the experts by DeepEP's kernels; measured in bfloat16.

    Raises:
        ConfigError: as :func:`dispatch`.
    """
    setting = (nodes, gpus_per_node, tokens, hidden, top_k, experts, dtype)
    return _exchange(hardware, mode, Direction.COMBINE, *setting)


def _exchange(
    hardware: Hardware | str,
    mode: str,
    direction: Direction,
    nodes: int,
    gpus_per_node: int,
    tokens: int,
    hidden: int,
    top_k: int,
    experts: int,
    dtype: str,
) -> Estimate:
    gpu, family = _hardware(hardware), _word(ExchangeMode, f"{direction}.mode", mode)
    stored = _word(KernelDtype, f"{direction}.dtype", dtype, CACHE_DTYPES)
    spread = _count(f"{direction}.nodes", nodes, most=MAX_GPUS)
    each = _count(f"{direction}.gpus_per_node", gpus_per_node, most=MAX_GPUS)
    total = _count(f"{direction}.experts", experts, most=MAX_EXPERTS)
    picks = _count(f"{direction}.top_k", top_k, most=total)
    if spread * each < 2:
        raise ConfigError(f"{direction}.gpus_per_node", each, "on one node must be 2 or more", "try 8")
    if total % (spread * each):
        rule = f"must be a multiple of the {spread * each} GPUs"
        raise ConfigError(f"{direction}.experts", total, rule, f"try {spread * each}")
    rows = _count(f"{direction}.tokens", tokens)
    width = _count(f"{direction}.hidden", hidden)
    joined = _nodes_per_domain(gpu) if spread % _nodes_per_domain(gpu) == 0 else 1
    if spread <= _nodes_per_domain(gpu):
        joined = spread  # every node is reached over NVLink
    nodes, each = spread // joined, each * joined
    setting = (family, direction, nodes, each, rows, width, picks, total, stored)
    return answer(gpu, lambda on: calls.exchange_call(on, *setting))


def _hardware(given: Hardware | str) -> Hardware:
    return given if isinstance(given, Hardware) else known_hardware(given)


def _count(field: str, value: object, *, at_least: int = 1, most: int = MAX_SIZE) -> int:
    """A whole number in range; a whole float, as 1e6, and an array's own integers count."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
        value = index(value)
    number = whole_number(field, value, at_least=at_least)
    if number > most:
        raise ConfigError(field, number, f"must be {most} or less", f"try {most}")
    return number


def _phase(field: str, value: str) -> Phase:
    if value not in PHASES:
        raise ConfigError(field, value, "must be prefill or decode", "try prefill")
    return Phase(value)


def _word(kind: type[_Word], field: str, value: str, allowed: tuple[_Word, ...] = ()) -> _Word:
    """A member of an enum by its name, of those ``allowed`` or of all."""
    names = [str(each.value) for each in allowed or kind]
    if value not in names:
        raise ConfigError(field, value, f"must be one of {', '.join(names)}", f"try {names[0]}")
    return kind(value)


__all__ = [
    "Estimate",
    "attention",
    "collective",
    "combine",
    "dispatch",
    "dsa",
    "gemm",
    "linear_attention",
    "mla",
    "moe",
    "quantize",
]
