"""SGLang's sizes after its silent changes: deprecated flags, DWDP, and backends that set EP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.frameworks.notes import Note
from tracer.frameworks.sglang.flags import EP_SPANNING_BACKENDS

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes as SGLang resolves them; ``tp`` is the size of one pipeline stage, not of tensor parallelism."""

    tp: int
    pp: int
    dp: int
    attn_dp: int
    attn_cp: int
    dcp: int
    ep: int
    moe_dp: int
    dwdp: int
    dense_tp: int | None
    backend: str

    @property
    def attn_tp(self) -> int:
        """Tensor parallelism of attention."""
        return self.tp // self.attn_dp // self.attn_cp

    @property
    def moe_tp(self) -> int:
        """Tensor parallelism of experts."""
        return self.tp // self.ep // self.moe_dp

    @property
    def world(self) -> int:
        """GPUs of all replicas (compute_world_size)."""
        return self.dp * self.tp * self.pp


def resolve(request: Request) -> tuple[Sizes, list[Note]]:
    """The sizes, and a warning for each that is not what the flags say."""
    settings = request.settings
    notes: list[Note] = []
    dp, attn_dp = settings.size("dp_size"), settings.size("attn_dp_size")
    if settings.on("enable_dp_attention") and attn_dp == 1:
        notes.append(_translated(dp))
        dp, attn_dp = 1, dp
    tp, ep, moe_dp = settings.size("tp_size"), settings.size("ep_size"), settings.size("moe_dp_size")
    backend, dense_tp, dwdp = (
        settings.text("moe_a2a_backend"),
        settings.maybe("moe_dense_tp_size"),
        settings.size("dwdp_size"),
    )
    for dest in ("enable_ep_moe", "enable_deepep_moe"):
        if settings.on(dest):
            notes.append(_removed(settings.name(dest), tp))
            ep, backend = tp, "deepep" if dest == "enable_deepep_moe" else backend
    attn_cp = settings.size("attn_cp_size")
    if settings.on("enable_prefill_cp") and request.model is not None and request.model.mla:
        attn_dp, dp = attn_dp * dp, 1
        attn_cp, ep, dense_tp, backend = max(tp // attn_dp, 1), tp, 1, "deepep"
        notes.append(_latent_cp(tp, attn_dp))
    elif settings.on("enable_prefill_cp") and request.model is None:
        notes.append(_MODEL_DECIDES)
    if dwdp > 1:
        notes.append(_forced(dwdp))
        dp, attn_dp, ep, moe_dp, dense_tp, backend = 1, dwdp, dwdp, 1, 1, "none"
    elif backend in EP_SPANNING_BACKENDS:
        if ep != tp:
            notes.append(_reset(backend, ep, tp))
        ep = tp
    return (
        Sizes(
            tp=tp,
            pp=settings.size("pp_size"),
            dp=dp,
            attn_dp=attn_dp,
            attn_cp=attn_cp,
            dcp=settings.size("dcp_size"),
            ep=ep,
            moe_dp=moe_dp,
            dwdp=dwdp,
            dense_tp=dense_tp,
            backend=backend,
        ),
        notes,
    )


def _translated(dp: int) -> Note:
    return Note(
        "dp_attention_deprecated",
        f"--dp-size {dp} with --enable-dp-attention means attention DP inside --tp-size: it is read as "
        f"--attn-dp-size {dp} and --dp-size 1, and adds no GPUs",
        f"write --attn-dp-size {dp}; --dp-size alone now counts whole copies of the model",
    )


def _latent_cp(tp: int, attn_dp: int) -> Note:
    return Note(
        "prefill_cp_sets_sizes",
        "--enable-prefill-cp on a model with latent attention sets attn_cp = tp / attn_dp = "
        f"{max(tp // attn_dp, 1)}, ep = {tp}, moe_dense_tp = 1 and the all-to-all backend deepep; attention "
        "then has no TP",
        "drop the flags that it overrides",
    )


_MODEL_DECIDES = Note(
    "prefill_cp_needs_a_model",
    "--enable-prefill-cp: on DeepSeek models (latent attention) SGLang sets the CP and EP sizes itself; no "
    "model is known here, so the sizes are taken as the flags say",
    "name the model, or add --model config.json",
)


def _removed(name: str, tp: int) -> Note:
    return Note(
        "removed_flag",
        f"{name} was removed; it is read as it worked, EP = the TP size ({tp})",
        f"write --ep-size {tp}" + (" --moe-a2a-backend deepep" if "deepep" in name else ""),
    )


def _forced(dwdp: int) -> Note:
    return Note(
        "dwdp_forces_sizes",
        f"--dwdp-size {dwdp} sets attn_dp = ep = {dwdp}, moe_dp = 1, moe_dense_tp = 1 and the all-to-all "
        "backend to none, whatever the flags say",
        "drop the flags that it overrides",
    )


def _reset(backend: str, ep: int, tp: int) -> Note:
    return Note(
        "ep_reset_to_tp",
        f"--moe-a2a-backend {backend} sets the expert parallel size from {ep} to the TP size, {tp}",
        f"write --ep-size {tp}, or --moe-a2a-backend none to keep {ep}",
    )
