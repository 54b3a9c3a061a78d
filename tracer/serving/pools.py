"""A prefill pool and a decode pool with meshes of their own, joined by one request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.display import format_bytes
from tracer.errors import ConfigError
from tracer.memory.kv_room import kv_room
from tracer.mesh.cluster import Link
from tracer.scenario.token import Phase

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

_SAME_MODEL = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "v_head_dim", "kv_lora_rank", "qk_rope_head_dim",
    "vocab", "experts", "top_k",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pools:
    """Two deployments of one model on separate nodes: prefill makes the K/V, decode uses it.

    The scenarios' replicas serve the request. Ranks of the decode pool are shown after the prefill pool's,
    from ``offset`` on; whatever moves between the pools crosses NVLink domains.

    Raises:
        ConfigError: when the phases, the models or the K/V dtypes differ, when the decode scenario has
            another prompt, or when the decode pool cannot hold the K/V.
    """

    prefill: Scenario
    decode: Scenario

    def __post_init__(self) -> None:
        if self.prefill.decodes or not self.decode.decodes:
            phases = [self.prefill.phase, self.decode.phase]
            raise ConfigError(
                "pools", phases, "must be prefill, then decode", "try Pools.join(prefill, decode)"
            )
        _check_same(self.prefill, self.decode)
        _check_room(self.decode)

    @classmethod
    def join(cls, prefill: Scenario, decode: Scenario) -> Pools:
        """The pools of two scenarios in any phase; the request's prompt is the prefill scenario's.

        Raises:
            ConfigError: as the class does.
        """
        first, second = prefill.with_phase(Phase.PREFILL), decode.with_phase(Phase.DECODE)
        new = max(0, second.position - second.token.prompt) + first.token.prompt
        token = replace(second.token, prompt=first.token.prompt, position=new, gpu=None)
        token = replace(token, replica=second.replica, slot=second.slot)
        return cls(first, replace(second, token=token))

    @property
    def offset(self) -> int:
        """Number that rank 0 of the decode pool has beside the prefill pool's ranks."""
        return self.prefill.mesh.world_size

    @property
    def link(self) -> Link:
        """The link of one GPU between the pools: the slower of the two pools' InfiniBand."""
        links = (self.prefill.cluster.ib, self.decode.cluster.ib)
        return Link(min(link.bytes_per_s for link in links), max(link.latency_s for link in links))


def _check_same(prefill: Scenario, decode: Scenario) -> None:
    ours, theirs = prefill.model, decode.model
    for name in _SAME_MODEL:
        if getattr(ours, name) != getattr(theirs, name):
            raise ConfigError(
                f"pools.decode.model.{name}",
                getattr(theirs, name),
                f"must be the prefill pool's {getattr(ours, name)}",
                "run one model in both pools",
            )
    if ours.layer_kinds != theirs.layer_kinds:
        rule = "must have the prefill pool's kinds of layers"
        raise ConfigError("pools.decode.model.layer_kinds", theirs.name, rule, "run one model in both pools")
    for name, mine, other in (
        ("dtype.kv", prefill.dtype.kv, decode.dtype.kv),
        ("token.prompt", prefill.token.prompt, decode.token.prompt),
    ):
        if mine != other:
            raise ConfigError(
                f"pools.decode.{name}", other, f"must be the prefill pool's {mine}", f"set it to {mine}"
            )


def _check_room(decode: Scenario) -> None:
    """Every rank must hold its share of the K/V of all requests of a step, each as long as this one."""
    requests = decode.decode_landing.batch * decode.mesh.cp
    fullest = max(kv_room(decode, requests=requests), key=lambda room: room.kv_bytes)
    if fullest.left_bytes is None or fullest.left_bytes >= 0:
        return
    fit = max(0, fullest.free_bytes or 0) // max(1, fullest.share.bytes)
    smaller = "a larger tp, cp or pp" if not decode.model.mla else "a larger cp, dcp or pp"
    fix = (
        f"try {fit // decode.mesh.size_of('cp')} a CP rank (token.batch)"
        if fit >= decode.mesh.cp
        else f"try {smaller}, dtype.kv = 'fp8', or a prompt shorter than {decode.token.prompt:,}"
    )
    raise ConfigError(
        "pools.decode",
        f"{requests} requests of {decode.position + 1:,} positions",
        f"cannot hold the K/V: GPU {fullest.rank} would keep {format_bytes(fullest.kv_bytes)} of "
        f"the {format_bytes(max(0, fullest.free_bytes or 0))} that weights leave",
        fix,
    )
