"""How the mesh is run: where SP splits, how K/V, experts, embedding and layers travel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tracer.errors import ConfigError, one_of, whole_number


class Sp(StrEnum):
    """Where tokens are split over the TP group."""

    MEGATRON = "megatron"
    OFF = "off"
    BEFORE_DISPATCH = "before_dispatch"


class Contract(StrEnum):
    """What a MoE layer moves: tokens, sums, all rows, or weights."""

    EP = "ep"
    TP = "tp"
    AG_RS = "ag_rs"
    DWDP = "dwdp"


CHOICES = {
    "sp": tuple(Sp),
    "kv_exchange": ("ring", "all_gather"),
    "dispatch": ("high_throughput", "low_latency"),
    "contract": tuple(Contract),
    "tp_algo": ("direct", "ring"),
    "embedding": ("replicated", "vocab_parallel"),
    "landing": ("zigzag", "contiguous"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Named choices of one deployment; the words are those of the counting rules.

    ``dense_tp`` is None for the mesh's tp, or 1; ``stage_layers`` lists the layers of each stage when
    they are not split evenly.

    Raises:
        ConfigError: for a word that is not one of the choices.
    """

    sp: str = Sp.MEGATRON
    kv_exchange: str = "ring"
    dispatch: str = "high_throughput"
    contract: str = Contract.EP
    tp_algo: str = "direct"
    dense_tp: int | None = None
    shared_tp: bool = False
    embedding: str = "replicated"
    landing: str = "zigzag"
    stage_layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            one_of(f"mesh.{name}", getattr(self, name), tuple(str(word) for word in allowed))
        if not isinstance(self.shared_tp, bool):
            raise ConfigError("mesh.shared_tp", self.shared_tp, "must be true or false", "try false")
        if self.dense_tp is not None:
            whole_number("mesh.dense_tp", self.dense_tp)
        for stage, layers in enumerate(self.stage_layers or ()):
            whole_number(f"mesh.stage_layers[{stage}]", layers)


def split_layers(layers: int, stages: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Layers of each stage: as given, else evenly, the first stages taking one more each.

    >>> split_layers(61, 4, None)
    (16, 15, 15, 15)

    Raises:
        ConfigError: when a stage would be empty, or given sizes do not add up.
    """
    if given is not None:
        if len(given) != stages or sum(given) != layers:
            raise ConfigError(
                "mesh.stage_layers",
                list(given),
                f"must list {stages} stages that add up to {layers} layers",
                "mend the list, or leave it out for an even split",
            )
        return given
    if stages > layers:
        raise ConfigError(
            "mesh.pp",
            stages,
            f"is more stages than the model's {layers} layers",
            f"try {layers} or fewer stages",
        )
    share, extra = divmod(layers, stages)
    return (share + 1,) * extra + (share,) * (stages - extra)
