"""TensorRT-LLM's sizes with its defaults: what is not given is the quotient of what is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.notes import Refusal
from tracer.frameworks.tensorrt_llm.flags import CLUSTER, CP, CP_TYPES, MOE_EP, MOE_TP, PP, TP

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a Mapping; ``moe_world`` is the ranks of a stage that MoE layers are laid over."""

    tp: int
    pp: int
    cp: int
    cp_type: str
    moe_world: int
    moe_tp: int
    moe_ep: int
    cluster: int
    attention_dp: bool
    workers: int
    dwdp: int

    @property
    def world(self) -> int:
        """Ranks of all workers (one, without DWDP)."""
        return self.tp * self.pp * self.cp * self.workers


def resolve(request: Request) -> Sizes:
    """The sizes of the Mapping that the flags make.

    Source: ``mapping.py`` (MappingBase.__init__), ``dwdp.py`` (DwdpManager).
    """
    settings = request.settings
    tp, pp, cp = settings.size(TP), settings.size(PP), settings.size(CP)
    cp_type = str(settings.table("cp_config").get("cp_type") or "ULYSSES").upper()
    _check_cp_type(cp_type)
    moe_world = tp if cp_type == "ULYSSES" else tp * cp
    cluster = settings.maybe(CLUSTER) or 1
    moe_tp, moe_ep = settings.maybe(MOE_TP), settings.maybe(MOE_EP)
    if cp_type == "ATTN2D":
        moe_tp, moe_ep = 1, moe_world
    elif moe_tp is None and moe_ep is None:
        moe_tp, moe_ep = moe_world // cluster, 1
    elif moe_tp is None:
        moe_tp = moe_world // ((moe_ep or 1) * cluster)
    elif moe_ep is None:
        moe_ep = moe_world // (moe_tp * cluster)
    dwdp = settings.inner("dwdp_config", "dwdp_size", low=1) or 1
    if dwdp > 1:
        moe_tp = moe_ep = moe_world = cluster = 1
    return Sizes(
        tp=tp,
        pp=pp,
        cp=cp,
        cp_type=cp_type,
        moe_world=moe_world,
        moe_tp=moe_tp or 0,
        moe_ep=moe_ep or 0,
        cluster=cluster,
        attention_dp=settings.on("enable_attention_dp"),
        workers=_workers(request, dwdp, tp * pp * cp),
        dwdp=dwdp,
    )


def _check_cp_type(name: str) -> None:
    """The kind of context parallelism must be one that exists."""
    if name not in CP_TYPES:
        raise Refusal(
            "cp_config",
            f"Invalid cp_type: {name}. Must be one of: {', '.join(CP_TYPES)}",
            otherwise='try --cp_config \'{"cp_type": "HELIX"}\'',
        )


def _workers(request: Request, dwdp: int, ranks: int) -> int:
    """Context workers of DWDP: ``num_groups`` groups of ``dwdp_size``, else as many groups as GPUs hold."""
    if dwdp == 1:
        return 1
    groups = None
    for key in ("num_groups", "num_group"):
        groups = groups or request.settings.inner("dwdp_config", key, low=1)
    if groups is None and request.gpus is not None and request.gpus % (dwdp * ranks) == 0:
        groups = request.gpus // (dwdp * ranks)
    return dwdp * (groups or 1)


def tp_before_cp(version: str | None) -> bool:
    """Whether a version is from before PR #10350 (merged 2026-01-05), which made CP the fastest axis.

    ``1.1.0``, ``0.21``, ``1.2.0rc6`` are; ``1.2.0`` and later are not. None is the current order.

    Raises:
        ConfigError: for a text that is not a version.
    """
    if version is None or version == "new":
        return False
    if version == "old":
        return True
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:\.?rc(\d{1,6}))?", version)
    if found is None:
        raise ConfigError(
            "--framework-version", version, "is not a version of TensorRT-LLM", "try 1.1.0, 1.2.0, old or new"
        )
    major, minor, patch, candidate = (int(part) if part else None for part in found.groups())
    release = (major or 0, minor or 0, patch or 0)
    return release < (1, 2, 0) or (release == (1, 2, 0) and candidate is not None and candidate < 8)
