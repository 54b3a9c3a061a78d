"""``tokentrip time collective`` and its siblings: how long one call takes, and how that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.timing.estimate import Estimate

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def bytes_typed(text: str) -> int:
    """A number of bytes with a unit: 512, 64KiB, 1MiB, 2GB.

    >>> bytes_typed("1MiB"), bytes_typed("2 kB"), bytes_typed("512")
    (1048576, 2000, 512)

    Raises:
        ConfigError: for another unit, or no whole number of bytes.
    """
    digits = text.strip().rstrip("abgikmABGIKM ")
    unit = text.strip()[len(digits) :].strip().lower()
    try:
        number = float(digits) * _UNITS[unit]
        whole = int(number)
    except (KeyError, ValueError, OverflowError):
        whole, number = -1, 0.0
    if whole != number or whole < 0:
        raise ConfigError("--bytes", text, "must be a whole number of bytes, with a unit", "try 1MiB")
    return whole


def _whole(name: str, text: str, default: int | None = None) -> Decorator:
    """An option that takes a whole number; required without a default."""
    flag = f"--{name.replace('_', '-')}"
    if default is None:
        return click.option(flag, name, type=int, required=True, help=text)
    return click.option(flag, name, type=int, default=default, show_default=True, help=text)


def _text(name: str, text: str, default: str | None = None) -> Decorator:
    """An option that takes a word; required without a default."""
    flag = f"--{name.replace('_', '-')}"
    if default is None:
        return click.option(flag, name, required=True, help=text)
    return click.option(flag, name, default=default, show_default=True, help=text)


def _calculator(name: str, *options: Decorator) -> Callable[[Callable[..., Estimate]], click.Command]:
    """A command that prints one estimate, with --hardware and --json beside its own options."""

    def made(function: Callable[..., Estimate]) -> click.Command:
        def command(as_json: bool, **given: Any) -> None:
            """Print the estimate."""
            _print(function(**given), as_json)

        command.__doc__ = function.__doc__
        command.__name__ = function.__name__
        decorated: Callable[..., Any] = json_option()(command)
        for option in reversed((*options, _text("hardware", "A GPU that ships, such as h100.", "h100"))):
            decorated = option(decorated)
        return click.command(name)(decorated)

    return made


def _print(found: Estimate, as_json: bool) -> None:
    from tracer.display import format_seconds

    if as_json:
        print_json(found.to_dict())
        return
    click.echo(format_seconds(found.seconds))
    click.echo(f"  basis  {found.basis}")
    if found.error is None:
        click.echo("  error  not known")
    else:
        click.echo(f"  error  {found.error:.1%} (median on measurements that the fit had not seen)")
    if found.interval_seconds is not None:
        low, high = (format_seconds(each) for each in found.interval_seconds)
        click.echo(f"  range  {low} to {high} for nine of ten measurements")
    click.echo(f"  floor  {format_seconds(found.floor_seconds)} at the data sheet's peak")


_PHASE = click.argument("phase", metavar="PHASE")
_BATCH = _whole("batch", "Sequences.")
_LENGTH = _whole("length", "Tokens of a prompt; decode: cached tokens, the new one included.")
_GEMM_DTYPE = _text("gemm_dtype", "bfloat16, fp8_block or nvfp4.", "bfloat16")
_KV_DTYPE = _text("kv_dtype", "bfloat16 or fp8.", "bfloat16")


@_calculator(
    "collective",
    click.argument("kind", metavar="KIND"),
    click.option("--bytes", "nbytes", required=True, help="Size as nccl-tests states it, such as 1MiB."),
    _whole("gpus", "GPUs of the group, over all nodes."),
    _whole("nodes", "Nodes they are spread over.", 1),
)
def collective_command(kind: str, nbytes: str, **given: Any) -> Estimate:
    """Time a collective: all_reduce, all_gather, reduce_scatter, all_to_all, custom_all_reduce.

    \b
    Example:
      tokentrip time collective all_reduce --bytes 1MiB --gpus 8 --hardware h100
    """
    from tracer.timing.estimate import collective

    return collective(kind=kind, nbytes=bytes_typed(nbytes), **given)


@_calculator(
    "gemm",
    _whole("m", "Rows of A and C."),
    _whole("n", "Columns of B and C."),
    _whole("k", "Columns of A, rows of B."),
    _text("dtype", "bfloat16, fp8, fp8_block or nvfp4.", "bfloat16"),
)
def gemm_command(**given: Any) -> Estimate:
    """Time a matrix product C[m,n] = A[m,k] B[k,n].

    \b
    Example:
      tokentrip time gemm --m 4096 --n 7168 --k 2048 --dtype fp8_block
    """
    from tracer.timing.estimate import gemm

    return gemm(**given)


@_calculator(
    "attention",
    _PHASE,
    _BATCH,
    _LENGTH,
    _whole("heads", "Query heads on the GPU."),
    _whole("kv_heads", "K/V heads on the GPU."),
    _whole("head_dim", "Values of a head.", 128),
    _whole("window", "Sliding window in tokens; 0 is none.", 0),
    _text("dtype", "What a prompt's attention computes in: bfloat16 or fp8.", "bfloat16"),
    _KV_DTYPE,
)
def attention_command(**given: Any) -> Estimate:
    """Time an attention core in PHASE prefill or decode.

    \b
    Example:
      tokentrip time attention decode --batch 64 --length 4096 --heads 8 --kv-heads 1
    """
    from tracer.timing.estimate import attention

    return attention(**given)


@_calculator(
    "mla", _PHASE, _BATCH, _LENGTH, _whole("heads", "Heads on the GPU, of 128."), _GEMM_DTYPE, _KV_DTYPE
)
def mla_command(**given: Any) -> Estimate:
    """Time DeepSeek-V3's attention block with its projections, in PHASE prefill or decode.

    \b
    Example:
      tokentrip time mla decode --batch 128 --length 4096 --heads 128 --kv-dtype fp8
    """
    from tracer.timing.estimate import mla

    return mla(**given)


@_calculator(
    "dsa",
    _PHASE,
    _BATCH,
    _LENGTH,
    _whole("heads", "Heads on the GPU."),
    _GEMM_DTYPE,
    _KV_DTYPE,
    _text("model", "deepseek-ai/DeepSeek-V3.2 or zai-org/GLM-5.", "deepseek-ai/DeepSeek-V3.2"),
    _whole("past", "Cached tokens before a prompt.", 0),
)
def dsa_command(**given: Any) -> Estimate:
    """Time the sparse attention block of DeepSeek-V3.2 or GLM-5, in PHASE prefill or decode.

    \b
    Example:
      tokentrip time dsa decode --batch 64 --length 32768 --heads 128
    """
    from tracer.timing.estimate import dsa

    return dsa(**given)


@_calculator(
    "linear-attention",
    _PHASE,
    _BATCH,
    _whole("length", "Tokens of a prompt; 1 in decode.", 1),
    _whole("heads", "Value heads on the GPU."),
    click.option("--kernel", help="One kernel alone, such as chunk_gated_delta_rule."),
)
def linear_attention_command(**given: Any) -> Estimate:
    """Time a gated delta net (Qwen3.5) in PHASE prefill or decode.

    \b
    Example:
      tokentrip time linear-attention prefill --batch 1 --length 8192 --heads 32
    """
    from tracer.timing.estimate import linear_attention

    return linear_attention(**given)


@_calculator("quantize", _whole("m", "Rows."), _whole("k", "Columns."))
def quantize_command(**given: Any) -> Estimate:
    """Time the kernel that turns [m,k] activations from BF16 to FP8.

    \b
    Example:
      tokentrip time quantize --m 4096 --k 7168
    """
    from tracer.timing.estimate import quantize

    return quantize(**given)


@_calculator(
    "moe",
    _whole("tokens", "Tokens of the whole expert-parallel group, before dispatch."),
    _whole("hidden", "Hidden size.", 7168),
    _whole("expert_hidden", "Hidden size of an expert.", 2048),
    _whole("experts", "Routed experts.", 256),
    _whole("top_k", "Experts per token.", 8),
    _whole("ep", "Expert-parallel GPUs.", 1),
    _whole("tp", "GPUs that split each expert.", 1),
    _text("dtype", "bfloat16, fp8, fp8_block, nvfp4, w4a16_mxfp4 or w4a8_mxfp4_mxfp8.", "fp8_block"),
    _text("distribution", "balanced, or power_law_x with its exponent.", "balanced"),
    click.option("--kernel", help="gated, nongated or min_latency; by the sizes if left out."),
)
def moe_command(**given: Any) -> Estimate:
    """Time the routed experts on the busiest GPU of an expert-parallel group.

    \b
    Example:
      tokentrip time moe --tokens 4096 --ep 32 --distribution power_law_1.2
    """
    from tracer.timing.estimate import moe

    return moe(**given)


_EXCHANGE = (
    click.argument("mode", metavar="MODE"),
    _whole("tokens", "Tokens per GPU."),
    _whole("nodes", "Nodes.", 1),
    _whole("gpus_per_node", "GPUs per node.", 8),
    _whole("hidden", "Hidden size.", 7168),
    _whole("top_k", "Experts per token.", 8),
    _whole("experts", "Routed experts.", 256),
)


@_calculator("dispatch", *_EXCHANGE, _text("dtype", "fp8 or bfloat16.", "fp8"))
def dispatch_command(**given: Any) -> Estimate:
    """Time tokens on their way to their experts by DeepEP, in MODE normal or low_latency.

    \b
    Example:
      tokentrip time dispatch low_latency --tokens 128 --nodes 2
    """
    from tracer.timing.estimate import dispatch

    return dispatch(**given)


@_calculator("combine", *_EXCHANGE, _text("dtype", "bfloat16 or fp8.", "bfloat16"))
def combine_command(**given: Any) -> Estimate:
    """Time the results on their way back by DeepEP, in MODE normal or low_latency.

    \b
    Example:
      tokentrip time combine normal --tokens 4096
    """
    from tracer.timing.estimate import combine

    return combine(**given)


CALCULATORS: dict[str, click.Command] = {
    each.name: each
    for each in (
        collective_command,
        gemm_command,
        attention_command,
        mla_command,
        dsa_command,
        linear_attention_command,
        quantize_command,
        moe_command,
        dispatch_command,
        combine_command,
    )
    if each.name
}


class TimeCommand(click.Command):
    """``tokentrip time``: a scenario, or one of ``CALCULATORS`` where its word comes first."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the calculator named first, or of the scenario's command."""
        if args and args[0] in CALCULATORS:
            word = args.pop(0)
            return CALCULATORS[word].make_context(f"{info_name} {word}", args, parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)
