"""DeepSpeed's sizes, and which of its two MoE rules applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of one launch. ``folding`` is AutoEP over AutoTP; else the legacy rule carves EP out of DP.

    Source of the folding rule: ``deepspeed/module_inject/auto_ep_folding.py`` of release 0.19.8.
    """

    world: int
    tp: int
    tp_dest: str
    pp: int
    sp: int
    ep: int
    ep_dest: str
    auto_ep: bool

    @property
    def folding(self) -> bool:
        """Whether EP lies over consecutive ranks, across the TP lanes."""
        return self.auto_ep and self.tp > 1

    @property
    def dp(self) -> int:
        """Data parallelism: what is left over."""
        return self.world // (self.tp * self.pp * self.sp)


def resolve(request: Request) -> Sizes:
    """The sizes that settings give. AutoTP and AutoEP settings win over the topology's names.

    AutoEP folds when it is used together with tensor parallelism; without TP its groups are those of the
    legacy rule.
    """
    settings = request.settings
    auto_tp = settings.size("autotp_size")
    tp_dest = "autotp_size" if auto_tp > 0 else "num_mp"
    tp = auto_tp or settings.size("num_mp")
    pp, sp = settings.size("num_pp"), settings.size("sequence_parallel_size")
    auto_ep = settings.has("autoep_size") or settings.on("autoep_enabled")
    ep = (settings.maybe("autoep_size") or 1) if auto_ep else settings.size("ep_size")
    given = settings.maybe("num_dp")
    world = request.gpus
    if world is None and given is not None:
        world = given * tp * pp * sp
    return Sizes(
        world=world if world is not None else request.need_gpus("DeepSpeed"),
        tp=tp,
        tp_dest=tp_dest,
        pp=pp,
        sp=sp,
        ep=ep,
        ep_dest="autoep_size" if auto_ep else "ep_size",
        auto_ep=auto_ep,
    )
