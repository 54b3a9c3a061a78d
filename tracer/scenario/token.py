"""Which rank the followed token lands on: a position or a GPU, in either phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, whole_number

if TYPE_CHECKING:
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Token:
    """Which token is followed: a position of a replica's prompt, or the first that lands on a GPU.

    ``prompt`` is the prompt's length; ``prompt_logprobs`` sends every position through the LM head;
    ``draft_head`` (EAGLE, MTP) reads every final row, so nothing of the last layer is dead work.
    In decode the position is the prompt's length or more; new tokens go round the CP ranks from
    ``first_cp``, and this one has ``slot`` among the ``batch`` tokens (None: tp) that its CP rank decodes
    in a step.
    """

    prompt: int
    replica: int | None = None
    position: int | None = None
    gpu: int | None = None
    prompt_logprobs: bool = False
    draft_head: bool = False
    first_cp: int = 0
    slot: int | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        whole_number("token.prompt", self.prompt)
        whole_number("token.first_cp", self.first_cp, at_least=0)
        if self.batch is not None:
            whole_number("token.batch", self.batch)
        for name in ("replica", "position", "gpu", "slot"):
            if getattr(self, name) is not None:
                whole_number(f"token.{name}", getattr(self, name), at_least=0)
        for name in ("prompt_logprobs", "draft_head"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"token.{name}", getattr(self, name), "must be true or false", "try false")


def find_token(scenario: Scenario) -> tuple[int, int, int]:
    """(replica, position, home rank) of the scenario's token.

    Raises:
        ConfigError: when the position, the replica, the slot and the GPU do not fit each other.
    """
    token, mesh = scenario.token, scenario.mesh
    named = None if token.gpu is None else _check_gpu(token, mesh)
    replica = (token.replica if named is None else named["dp"]) or 0
    if replica >= mesh.size_of("dp"):
        raise ConfigError(
            "token.replica",
            replica,
            f"must be one of the {mesh.size_of('dp')} replicas",
            f"try 0 to {mesh.size_of('dp') - 1}",
        )
    place = _new_token if scenario.decodes else _prompt_token
    position, cp, tp = place(scenario, named)
    home = mesh.rank(tp=tp, cp=cp, dp=replica, pp=0)
    if token.gpu is not None and token.gpu != home:
        raise ConfigError(
            "token.gpu",
            token.gpu,
            f"is not where position {position} lands (GPU {home})",
            "give one of the two",
        )
    return replica, position, home


def _prompt_token(scenario: Scenario, named: dict[str, int] | None) -> tuple[int, int, int]:
    """(position, cp, tp) of a prompt position; ``named`` are the coordinates of the GPU asked for."""
    token, landing = scenario.token, scenario.landing
    position = token.position
    if position is None and named is not None:
        position = landing.first_position_on(named["cp"], named["tp"], token.gpu or 0)
    position = position or 0
    if position >= token.prompt:
        raise ConfigError(
            "token.position",
            position,
            f"must lie in the prompt of {token.prompt}",
            f"try 0 to {token.prompt - 1}, or phase = 'decode'",
        )
    return (position, *landing.place_of(position))


def _new_token(scenario: Scenario, named: dict[str, int] | None) -> tuple[int, int, int]:
    """(position, cp, tp) of a token that decode adds to the prompt."""
    token, landing = scenario.token, scenario.decode_landing
    position, slot = token.position, token.slot
    if named is not None:
        position = landing.first_position_on(named["cp"]) if position is None else position
        slot = landing.first_slot_on(named["tp"], token.gpu or 0) if slot is None else slot
    position = token.prompt if position is None else position
    if position < token.prompt:
        raise ConfigError(
            "token.position",
            position,
            f"is in the prompt of {token.prompt}, which decode does not compute again",
            f"try {token.prompt} or more, or phase = 'prefill'",
        )
    slot = slot or 0
    if slot >= landing.batch:
        raise ConfigError(
            "token.slot",
            slot,
            f"must be one of the batch of {landing.batch}",
            f"try 0 to {landing.batch - 1}, or token.batch = {slot + 1}",
        )
    return (position, *landing.place_of(position, slot))


def _check_gpu(token: Token, mesh: Mesh) -> dict[str, int]:
    """Coordinates of ``token.gpu``, which must be a stage-0 rank of the given replica."""
    gpu = token.gpu
    if gpu is None or gpu >= mesh.world_size:
        raise ConfigError(
            "token.gpu",
            gpu,
            f"must be a GPU of the mesh's {mesh.world_size}",
            f"try 0 to {mesh.world_size - 1}",
        )
    found = mesh.coordinates(gpu)
    if found["pp"] != 0:
        twin = mesh.moved(gpu, "pp", 0)
        raise ConfigError(
            "token.gpu", gpu, f"is in stage {found['pp']}, but tokens land in stage 0", f"try GPU {twin}"
        )
    if token.replica is not None and token.replica != found["dp"]:
        raise ConfigError(
            "token.replica", token.replica, f"does not hold GPU {gpu}", f"try {found['dp']}, or leave it out"
        )
    return found
