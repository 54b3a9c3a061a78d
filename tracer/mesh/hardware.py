"""GPUs and the links between them: peak figures, each with its source."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from tracer.data import FOLDER
from tracer.errors import (
    MAX_SIZE,
    ConfigError,
    check_known_keys,
    check_table,
    check_text,
    finite_number,
    nearest,
    whole_number,
)

_MAX_RATE = 10**18
_RATES = (
    "nvlink_bytes_per_s", "ib_bytes_per_s", "hbm_bytes_per_s", "bf16_flops", "fp8_flops", "fp4_flops",
)  # fmt: skip


GPU_FIGURES = ("hbm_bytes", "hbm_bytes_per_s", "bf16_flops", "fp8_flops", "fp4_flops")
"""Figures of a GPU that a scenario's cluster may state, before those of the hardware it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFigures:
    """Figures of a GPU stated by hand, None where they are left to the hardware's own.

    The words and units are those of :class:`Hardware`.

    Raises:
        ConfigError: naming ``cluster.<figure>``.
    """

    hbm_bytes: int | None = None
    hbm_bytes_per_s: float | None = None
    bf16_flops: float | None = None
    fp8_flops: float | None = None
    fp4_flops: float | None = None

    def __post_init__(self) -> None:
        """Check every figure; whole-number rates become floats."""
        if self.hbm_bytes is not None:
            # 80e9 is how one writes it in TOML.
            size: object = self.hbm_bytes
            whole = int(size) if isinstance(size, float) and size.is_integer() else size
            object.__setattr__(self, "hbm_bytes", whole_number("cluster.hbm_bytes", whole, at_most=10**15))
        for name in GPU_FIGURES[1:]:
            value = getattr(self, name)
            if value is not None:
                checked = finite_number(f"cluster.{name}", value, at_most=_MAX_RATE)
                object.__setattr__(self, name, checked)

    @property
    def stated(self) -> dict[str, float]:
        """The figures that are stated, by name."""
        found = {name: getattr(self, name) for name in GPU_FIGURES}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One kind of GPU in its node. Peak rates a GPU; None is a figure no source was seen for.

    ``nvlink_bytes_per_s`` and ``ib_bytes_per_s`` are one direction (a datasheet's NVLink figure is
    often both). FLOPs are dense (without sparsity), per second. ``gpus_per_nvlink_domain`` is the size of an
    NVLink domain: a node, or whole nodes (72 on NVL72). ``hbm_bytes`` is the whole memory.

    Raises:
        ConfigError: naming ``hardware.<field>``.
    """

    name: str
    nvlink_bytes_per_s: float | None = None
    ib_bytes_per_s: float | None = None
    hbm_bytes_per_s: float | None = None
    hbm_bytes: int | None = None
    bf16_flops: float | None = None
    fp8_flops: float | None = None
    fp4_flops: float | None = None
    gpus_per_node: int
    gpus_per_nvlink_domain: int
    source: str
    note: str | None = None

    def __post_init__(self) -> None:
        """Check every value; whole-number rates become floats."""
        check_text("hardware.name", self.name)
        check_text("hardware.source", self.source)
        for rate in _RATES:
            object.__setattr__(self, rate, _rate(rate, getattr(self, rate)))
        if self.hbm_bytes is not None:
            whole_number("hardware.hbm_bytes", self.hbm_bytes, at_most=10**15)
        whole_number("hardware.gpus_per_node", self.gpus_per_node, at_most=MAX_SIZE)
        whole_number("hardware.gpus_per_nvlink_domain", self.gpus_per_nvlink_domain, at_most=MAX_SIZE)
        if self.gpus_per_nvlink_domain % self.gpus_per_node:
            got, rule = self.gpus_per_nvlink_domain, f"must be whole nodes of {self.gpus_per_node} GPUs"
            raise ConfigError("hardware.gpus_per_nvlink_domain", got, rule, f"try {self.gpus_per_node}")

    @property
    def nodes_per_island(self) -> int:
        """Nodes that one NVLink domain spans."""
        return self.gpus_per_nvlink_domain // self.gpus_per_node

    def need(self, figure: str, why: str = "answer this") -> float:
        """The figure called ``figure``, for instance ``bf16_flops``; ``why`` completes "is needed to ...".

        Raises:
            ConfigError: when no source was seen for it, or there is no such figure.
        """
        if figure not in (*_RATES, "hbm_bytes"):
            known = [*_RATES, "hbm_bytes"]
            raise ConfigError("hardware.figure", figure, "is not a figure of a GPU", nearest(figure, known))
        value: float | None = getattr(self, figure)
        if value is None:
            rule = f"is needed to {why}, and no source was seen for it on {self.name}"
            fix = f"state it (--set cluster.{figure}=..., or {figure} in [cluster]), or take other hardware"
            raise ConfigError(f"cluster.{figure}", None, rule, fix)
        return value

    @classmethod
    def from_dict(cls, table: object) -> Hardware:
        """From a table of the fields; a null is an absent key.

        Raises:
            ConfigError: for an unknown key, a required one that is absent, or a bad value.
        """
        given = {key: value for key, value in check_table("hardware", table).items() if value is not None}
        check_known_keys("hardware", given, [each.name for each in fields(cls)])
        for required in ("name", "gpus_per_node", "gpus_per_nvlink_domain", "source"):
            if required not in given:
                raise ConfigError(
                    f"hardware.{required}", None, "is needed to describe a GPU", f"add {required}"
                )
        return cls(**given)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Every field as plain JSON values; ``from_dict`` gives an equal one back."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def hardware_preset_names() -> tuple[str, ...]:
    """Names of the hardware that ships, sorted.

    >>> hardware_preset_names()[:3]
    ('a100', 'a100-40gb', 'b200')
    """
    return tuple(sorted(_stored()))


def hardware_preset(name: object) -> Hardware:
    """The hardware that ships under ``name``; upper and lower case are one.

    >>> hardware_preset("H100").nvlink_bytes_per_s
    450000000000.0
    >>> hardware_preset("gb200-nvl72").nodes_per_island
    18

    Raises:
        ConfigError: for a name that does not ship, with the nearest that does.
    """
    stored = _stored()
    slug = name.lower() if isinstance(name, str) else ""
    if slug not in stored:
        raise ConfigError(
            "cluster.hardware", name, "is not hardware that ships", nearest(slug, sorted(stored))
        )
    return Hardware.from_dict(stored[slug])


def _stored() -> dict[str, object]:
    """The data file of the package."""
    text = (FOLDER / "hardware.json").read_text(encoding="utf-8")
    return check_table("hardware", json.loads(text))


def _rate(name: str, value: object) -> float | None:
    """A finite rate above 0, or None."""
    if value is None:
        return None
    fix = "leave it out when it is not known"
    return finite_number(f"hardware.{name}", value, at_most=_MAX_RATE, fix=fix)
