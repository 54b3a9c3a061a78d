"""What a GPU holds: its part of the model, its tokens, the bytes of both, and what still fits.

DWDP's staging buffers: where pulled experts lie while a layer uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.memory.causal_work import RankWork, rank_work
from tracer.memory.kv import positions_kept
from tracer.memory.kv_owners import KvShare, kv_share
from tracer.memory.share import ModelShare, model_share
from tracer.memory.weights import WeightShard, held_weights
from tracer.scenario.plan import Contract, Sp
from tracer.scenario.step import bytes_per_expert

if TYPE_CHECKING:
    from tracer.memory.share import StageLayers
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario


BUFFERS = 2


def staging_bytes(scenario: Scenario, layers: StageLayers) -> int:
    """Bytes of the two ping-pong buffers, each as large as the most experts that a layer pulls.

    Every rank of a group has buffers of one size, that of the rank with the fewest experts of its own
    (SGLang ``srt/layers/moe/dwdp``: experts a peer sends are one number for the whole group). 0 for other
    contracts, for a group of one rank and for a stage without experts; one MoE layer needs one buffer.
    """
    mesh = scenario.mesh
    etp = mesh.etp
    if scenario.plan.contract is not Contract.DWDP or mesh.ep * etp == 1 or not layers.moe:
        return 0
    whole = bytes_per_expert(scenario)
    most = max(
        placement.experts * whole - fewest_experts(placement) * (whole // etp)
        for placement, _ in layers.placements
    )
    return min(BUFFERS, layers.moe) * most


def fewest_experts(placement: Placement) -> int:
    """Distinct experts of the EP rank that has the fewest."""
    if placement.slots is not None:
        return min(len(set(placement.experts_of(rank))) for rank in range(placement.ep))
    return placement.experts // placement.ep


NOT_COUNTED = "activations, communication buffers, biases, q/k norms and the framework's own memory"


@dataclass(frozen=True, slots=True)
class Residency:
    """What one GPU holds.

    ``kv`` is its share of one request's K/V: of the prompt, in decode also of the new tokens so far.
    ``rows`` are the prompt positions whose rows it has outside attention (none in decode),
    ``kv_positions`` those of its CP rank, of which it keeps the K/V of ``kv_kept`` (all, but for DCP's
    shards). ``work`` is the causal attention of its CP rank in prefill. ``staging_bytes`` are DWDP's
    buffers. ``hbm_bytes`` is the GPU's whole memory, None where the scenario names no hardware or no source
    states its memory.
    """

    share: ModelShare
    weights: tuple[WeightShard, ...]
    kv: KvShare
    staging_bytes: int
    hbm_bytes: int | None
    rows: tuple[range, ...]
    kv_positions: tuple[range, ...]
    kv_kept: int
    work: RankWork
    computes_prompt: bool

    @property
    def rank(self) -> int:
        """The GPU."""
        return self.share.rank

    @property
    def kv_bytes_per_token(self) -> int:
        """K/V of one token that it keeps, in all layers of its stage."""
        return self.kv.bytes_per_position

    @property
    def parameters(self) -> int:
        """Parameters it holds, copies of others' included."""
        return sum(each.parameters for each in self.weights)

    @property
    def weight_bytes(self) -> int:
        """Bytes of its weights, padding and scales included."""
        return sum(each.bytes for each in self.weights)

    @property
    def weight_bytes_by_part(self) -> dict[str, int]:
        """Bytes of its weights by part of the model."""
        found: dict[str, int] = {}
        for each in self.weights:
            found[str(each.part)] = found.get(str(each.part), 0) + each.bytes
        return found

    @property
    def free_bytes(self) -> int | None:
        """Memory that weights and staging buffers leave; negative where they don't fit."""
        return None if self.hbm_bytes is None else self.hbm_bytes - self.weight_bytes - self.staging_bytes

    @property
    def kv_tokens_that_fit(self) -> int | None:
        """Tokens whose K/V this GPU can keep beside its weights, were nothing else in memory."""
        return None if self.free_bytes is None else max(0, self.free_bytes) // self.kv_bytes_per_token

    def to_dict(self) -> dict[str, Any]:
        """The residency as JSON values: the ``holds`` of ``tracer/data/schemas/rank.schema.json``."""
        from tracer.memory.residency_text import residency_to_dict

        return residency_to_dict(self)

    def __str__(self) -> str:
        from tracer.memory.residency_text import residency_text

        return residency_text(self)


def residency_of(scenario: Scenario, rank: int, layers: StageLayers | None = None) -> Residency:
    """What a rank holds; ``layers`` saves looking up its stage's.

    Raises:
        ConfigError: for a rank outside the mesh, no model, or a size the model does not state.
    """
    share = model_share(scenario, rank, layers)
    rows, kv_positions = _tokens(scenario, rank)
    return Residency(
        share=share,
        weights=held_weights(scenario, share),
        kv=kv_share(scenario, rank),
        staging_bytes=staging_bytes(scenario, share.layers),
        hbm_bytes=hbm_bytes(scenario),
        rows=rows,
        kv_positions=kv_positions,
        kv_kept=positions_kept(scenario, rank),
        work=rank_work(scenario.landing, scenario.mesh.dense.coordinate(rank, "cp")),
        computes_prompt=not scenario.decodes,
    )


def hbm_bytes(scenario: Scenario) -> int | None:
    """Memory of the scenario's GPU, None where no hardware is named or no source states it."""
    if scenario.cluster.hardware is None:
        return None
    from tracer.mesh.hardware import hardware_preset

    return hardware_preset(scenario.cluster.hardware).hbm_bytes


def need_hbm_bytes(scenario: Scenario) -> int:
    """Memory of the scenario's GPU.

    Raises:
        ConfigError: when the scenario names no hardware, or no source states its memory.
    """
    from tracer.mesh.hardware import hardware_preset

    name = scenario.cluster.hardware
    if name is None:
        raise ConfigError(
            "cluster.hardware",
            None,
            "is needed to say what fits",
            "add it to [cluster], for instance hardware = 'h100'",
        )
    return int(hardware_preset(name).need("hbm_bytes", "say what fits"))


def _tokens(scenario: Scenario, rank: int) -> tuple[tuple[range, ...], tuple[range, ...]]:
    """(rows, K/V positions) of the prompt on a rank, padding left out."""
    at, landing = scenario.mesh.coordinates(rank), scenario.landing
    own = landing.positions_on(at["cp"], at["tp"])
    share = landing.positions_of_share(at["cp"])
    rows = own if scenario.plan.sp is Sp.MEGATRON else share
    if scenario.decodes:
        rows = ()
    return _real(rows, scenario.token.prompt), _real(share, scenario.token.prompt)


def _real(runs: tuple[range, ...], prompt: int) -> tuple[range, ...]:
    """Runs of positions without padding."""
    cut = (range(run.start, min(run.stop, prompt)) for run in runs)
    return tuple(run for run in cut if run)
