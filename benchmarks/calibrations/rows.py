"""Measured tables as calls of the engine, each with its seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.mesh.hardware import Hardware
from tracer.scenario.token import Phase
from tracer.timing.calibration import calls
from tracer.timing.calibration.fit import Call, OpWork
from tracer.timing.calibration.formats import KernelDtype
from tracer.timing.calibration.network import CollectiveKind, Direction, ExchangeMode
from tracer.timing.calibration.systems import known_hardware

SYSTEMS = ("h100", "h200", "b200")
MOE_KERNELS = {"moe_torch_flow_nongated": "nongated", "moe_torch_flow_min_latency": "min_latency"}
NCCL_KINDS = {"alltoall": "all_to_all"}


@dataclass(frozen=True, slots=True)
class Row:
    """A measured call: on which system, what shape it is of (rows of one shape stay in one fold)."""

    system: str
    call: Call
    seconds: float
    shape: tuple[object, ...]
    again: Callable[[Hardware], Call]
    """The same call on another GPU."""

    @property
    def work(self) -> OpWork:
        """The physics of the call itself."""
        return self.call.work(*self.call.sizes)


def read_rows(folder: Path, kinds: Iterable[str] | None = None) -> dict[str, list[Row]]:
    """Rows of every kind, or of those asked for."""
    readers = {
        _gemm: ("gemm",),
        _quantize: ("quantize",),
        _gdn: ("linear_attention",),
        _prefill: ("prefill_attention",),
        _decode: ("decode_attention",),
        _mla: ("mla_prefill", "mla_decode"),
        _dsa: ("dsa_prefill", "dsa_decode"),
        _moe: ("moe",),
        _custom: ("custom_all_reduce",),
        _nccl: ("nccl",),
        _deepep: ("deepep",),
    }
    wanted = None if kinds is None else set(kinds)
    found: dict[str, list[Row]] = {}
    for reader, gives in readers.items():
        if wanted is None or wanted & set(gives):
            for row in reader(folder):
                found.setdefault(row.call.kind, []).append(row)
    return found


def _row(
    system: str, seconds: float, shape: tuple[object, ...], make: Callable[..., Call], *args: Any
) -> Row:
    def again(other: Hardware) -> Call:
        return make(other, *args)

    return Row(system, again(known_hardware(system)), seconds, shape, again)


def _table(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet

    yield from pyarrow.parquet.read_table(path).to_pylist()


def _gemm(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "gemm.parquet"):
        shape = (each["n"], each["k"])
        dtype = KernelDtype(each["gemm_dtype"])
        yield _row(each["system"], each["latency"] * 1e-3, shape, calls.gemm_call, each["m"], *shape, dtype)


def _quantize(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "quantize.parquet"):
        shape = (each["m"], each["k"])
        yield _row(each["system"], each["latency"] * 1e-3, shape, calls.quantize_call, *shape)


def _gdn(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "linear_attention_gdn.parquet"):
        shape = (each["batch_size"], each["seq_len"])
        yield _row(
            each["system"],
            each["latency"] * 1e-3,
            shape,
            calls.linear_attention_call,
            each["kernel_source"],
            *shape,
            each["num_v_heads"],
        )


def _prefill(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "context_attention.parquet"):
        shape = tuple(each[key] for key in _HEADS)
        dtypes = (KernelDtype(each["attn_dtype"]), KernelDtype(each["kv_cache_dtype"]))
        yield _row(
            each["system"],
            each["latency"] * 1e-3,
            shape,
            calls.prefill_call,
            each["batch_size"],
            each["isl"],
            *shape,
            *dtypes,
        )


_HEADS = ("num_heads", "num_key_value_heads", "head_dim", "window_size")


def _decode(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "generation_attention.parquet"):
        shape = tuple(each[key] for key in _HEADS)
        length, dtype = each["step"] + 1, KernelDtype(each["kv_cache_dtype"])
        yield _row(
            each["system"],
            each["latency"] * 1e-3,
            shape,
            calls.decode_call,
            each["batch_size"],
            length,
            *shape,
            dtype,
        )


def _mla(folder: Path) -> Iterator[Row]:
    for phase, name, key in ((Phase.PREFILL, "context", "isl"), (Phase.DECODE, "generation", "step")):
        for each in _table(folder / f"mla_{name}_module.parquet"):
            dtypes = (KernelDtype(each["gemm_type"]), KernelDtype(each["kv_cache_dtype"]))
            yield _row(
                each["system"],
                each["latency"] * 1e-3,
                (each["num_heads"], each["batch_size"]),
                calls.mla_call,
                phase,
                each["batch_size"],
                each[key],
                each["num_heads"],
                *dtypes,
            )


def _dsa(folder: Path) -> Iterator[Row]:
    for phase, name, key in ((Phase.PREFILL, "context", "isl"), (Phase.DECODE, "generation", "step")):
        for each in _table(folder / f"dsa_{name}_module.parquet"):
            dtypes = (KernelDtype(each["gemm_type"]), KernelDtype(each["kv_cache_dtype"] or "bfloat16"))
            yield _row(
                each["system"],
                each["latency"] * 1e-3,
                (each["num_heads"], each["batch_size"]),
                calls.dsa_call,
                phase,
                each["batch_size"],
                each[key],
                each["num_heads"],
                *dtypes,
                each["model"],
                each["step"] if phase == "prefill" else 0,
            )


def _moe(folder: Path) -> Iterator[Row]:
    for each in _table(folder / "moe.parquet"):
        kernel = MOE_KERNELS.get(each["kernel_source"], "gated")
        shape = (each["hidden_size"], each["inter_size"], each["topk"], each["num_experts"])
        yield _row(
            each["system"],
            each["latency"] * 1e-3,
            shape,
            calls.moe_call,
            each["num_tokens"],
            each["hidden_size"],
            each["inter_size"] / each["moe_tp_size"],
            each["num_experts"],
            each["topk"],
            each["moe_ep_size"],
            KernelDtype(each["moe_dtype"]),
            each["distribution"],
            kernel,
            2 if kernel == "nongated" else 3,
        )


def _custom(folder: Path) -> Iterator[Row]:
    kind = CollectiveKind.CUSTOM_ALL_REDUCE
    for each in _table(folder / "custom_allreduce.parquet"):
        nbytes = 2.0 * each["message_size"]
        shape = (nbytes,)
        yield _row(
            each["system"],
            each["latency"] * 1e-3,
            shape,
            calls.collective_call,
            kind,
            each["num_gpus"],
            nbytes,
        )


def _nccl(folder: Path) -> Iterator[Row]:
    stored = json.loads((folder / "nccl.json").read_text(encoding="utf-8"))
    for key, points in stored["tables"].items():
        system, kind, gpus = key.split("/")
        name = CollectiveKind(NCCL_KINDS.get(kind, kind))
        for nbytes, micros in points:
            shape = (nbytes,)
            yield _row(
                system.split("_")[0], micros * 1e-6, shape, calls.collective_call, name, int(gpus), nbytes
            )


def _deepep(folder: Path) -> Iterator[Row]:
    stored = json.loads((folder / "deepep.json").read_text(encoding="utf-8"))
    for name, table in stored.items():
        system = name.split("_")[1]
        mode = ExchangeMode.NORMAL if name.endswith("normal") else ExchangeMode.LOW_LATENCY
        for each in table["rows"]:
            if mode is ExchangeMode.NORMAL and each["nodes"] == 8:
                continue  # the source calls these rows erratic
            for way in Direction:
                key = f"{way}_transmit_us" if mode is ExchangeMode.NORMAL else f"{way}_us"
                dtype = KernelDtype.FP8 if way is Direction.DISPATCH else KernelDtype.BFLOAT16
                setting = (mode, way, each["nodes"], 8, each["tokens"], 7168, 8, 256, dtype)
                shape = (each["nodes"], each["tokens"])
                yield _row(system, each[key] * 1e-6, shape, calls.exchange_call, *setting)
