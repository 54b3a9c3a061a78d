"""Where a token lands: positions of a prompt, and new tokens in decode; over CP ranks, then TP ranks.

``find_token`` turns what a scenario says of its token into a replica, a position and a home rank.

Zigzag cuts the prompt into 2·cp chunks and gives CP rank r chunks r and 2·cp-1-r, which balances the
causal mask (Llama 3, section 3.3.2); TP ranks then take equal runs of those tokens in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.scenario.plan import PromptCut
from tracer.scenario.token import Phase

if TYPE_CHECKING:
    from tracer.mesh.grid import IntArray
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan
    from tracer.scenario.token import Token


@dataclass(frozen=True, slots=True)
class Landing:
    """Cutting rule of one prompt over the cp × tp ranks of a replica.

    >>> landing = Landing(prompt=64, cp=2, tp=2)
    >>> landing.place_of(40)
    (1, 1)
    >>> landing.positions_on(1, 1)
    (range(32, 48),)
    """

    prompt: int
    cp: int
    tp: int
    zigzag: bool = True

    @classmethod
    def of(cls, token: Token, mesh: Mesh, plan: Plan) -> Landing:
        """How a token's prompt is cut over a replica of the mesh."""
        return cls(token.prompt, mesh.cp, mesh.tp, zigzag=plan.landing is PromptCut.ZIGZAG)

    @property
    def padded(self) -> int:
        """Prompt length with padding: a multiple of 2·cp·tp, or of tp when cp is 1."""
        unit = self.tp if self.cp == 1 else 2 * self.cp * self.tp
        return -(-self.prompt // unit) * unit

    @property
    def tokens_per_rank(self) -> int:
        """Rows of each rank outside attention, padding included."""
        return self.padded // (self.cp * self.tp)

    @property
    def is_zigzag(self) -> bool:
        """Whether the prompt is cut zigzag; one CP rank has nothing to balance."""
        return self.zigzag and self.cp > 1

    def cp_of(self, positions: IntArray) -> IntArray:
        """CP coordinates of the homes of an array of positions."""
        import numpy as np

        if not self.is_zigzag:
            return positions // (self.padded // self.cp)
        chunks = positions // (self.padded // (2 * self.cp))
        return np.minimum(chunks, 2 * self.cp - 1 - chunks)

    def place_of(self, position: int) -> tuple[int, int]:
        """(cp, tp) coordinates of the home of a position."""
        share = self.padded // self.cp
        if self.is_zigzag:
            chunk, offset = divmod(position, share // 2)
            second = chunk >= self.cp
            cp = 2 * self.cp - 1 - chunk if second else chunk
            local = offset + (share // 2 if second else 0)
        else:
            cp, local = divmod(position, share)
        return cp, local // self.tokens_per_rank

    def positions_on(self, cp: int, tp: int) -> tuple[range, ...]:
        """Runs of positions (padding included) whose home has these coordinates, in their order there."""
        rows = self.tokens_per_rank
        first, last = tp * rows, (tp + 1) * rows
        share = self.padded // self.cp
        if not self.is_zigzag:
            return (range(cp * share + first, cp * share + last),)
        half = share // 2
        runs = []
        for start, chunk in ((0, cp), (half, 2 * self.cp - 1 - cp)):
            low, high = max(first, start), min(last, start + half)
            if low < high:
                runs.append(range(chunk * half + low - start, chunk * half + high - start))
        return tuple(runs)

    def positions_of_share(self, cp: int) -> tuple[range, ...]:
        """Runs of positions (padding included) of a CP rank, all its TP ranks together: its chunks."""
        share = self.padded // self.cp
        if not self.is_zigzag:
            return (range(cp * share, (cp + 1) * share),)
        half = share // 2
        return tuple(range(chunk * half, (chunk + 1) * half) for chunk in (cp, 2 * self.cp - 1 - cp))

    def first_position_on(self, cp: int, tp: int, gpu: int) -> int:
        """First prompt position that lands on a rank, never the last of the prompt.

        Raises:
            ConfigError: when only padding, or the last position, lands there.
        """
        for run in self.positions_on(cp, tp):
            for position in run[:2]:
                if position < self.prompt - 1:
                    return position
        raise ConfigError(
            "token.gpu",
            gpu,
            f"gets no position of the prompt of {self.prompt} but padding or its last one",
            f"try a longer prompt (a multiple of {2 * self.cp * self.tp}), or give token.position",
        )


@dataclass(frozen=True, slots=True)
class DecodeLanding:
    """Cutting rule of the tokens that a replica decodes in one step.

    A request's new token T+i has its home, and keeps its K/V, on CP rank ``(first_cp + i) mod cp``
    (round-robin, Meta's context-parallel inference, arXiv 2411.01783). The ``batch`` tokens that a CP rank
    decodes together are padded to a multiple of tp and cut in equal runs, TP rank 0 first.

    >>> landing = DecodeLanding(prompt=64, cp=2, tp=2, first_cp=1, batch=2)
    >>> landing.place_of(64, slot=1), landing.place_of(65, slot=1)
    ((1, 1), (0, 1))
    """

    prompt: int
    cp: int
    tp: int
    first_cp: int
    batch: int

    @classmethod
    def of(cls, token: Token, mesh: Mesh) -> DecodeLanding:
        """How the tokens of a decode step are cut over a replica of the mesh."""
        return cls(token.prompt, mesh.cp, mesh.tp, token.first_cp, token.batch or mesh.tp)

    @property
    def padded(self) -> int:
        """Rows of a CP rank's batch with padding: a multiple of tp."""
        return -(-self.batch // self.tp) * self.tp

    @property
    def rows_per_rank(self) -> int:
        """Rows of each rank outside attention, padding included."""
        return self.padded // self.tp

    def cp_of(self, position: int) -> int:
        """CP coordinate of a new token's home."""
        return (self.first_cp + position - self.prompt) % self.cp

    def place_of(self, position: int, slot: int) -> tuple[int, int]:
        """(cp, tp) coordinates of the home of a new token in a slot of the batch."""
        return self.cp_of(position), slot // self.rows_per_rank

    def first_position_on(self, cp: int) -> int:
        """First new position whose home is on a CP rank."""
        return self.prompt + (cp - self.first_cp) % self.cp

    def first_slot_on(self, tp: int, gpu: int) -> int:
        """First slot of the batch on a TP rank.

        Raises:
            ConfigError: when only padding lands there.
        """
        slot = tp * self.rows_per_rank
        if slot >= self.batch:
            raise ConfigError(
                "token.gpu",
                gpu,
                f"gets only padding of a batch of {self.batch} over tp {self.tp}",
                f"try token.batch = {slot + 1} or more",
            )
        return slot


def find_token(token: Token, mesh: Mesh, plan: Plan, phase: Phase) -> tuple[int, int, int]:
    """(replica, position, home rank) of a token.

    Raises:
        ConfigError: when the position, the replica, the slot and the GPU do not fit each other.
    """
    named = None if token.gpu is None else _check_gpu(token, mesh)
    replica = (token.replica if named is None else named["dp"]) or 0
    if replica >= mesh.dp:
        raise ConfigError(
            "token.replica", replica, f"must be one of the {mesh.dp} replicas", f"try 0 to {mesh.dp - 1}"
        )
    if phase is Phase.DECODE:
        position, cp, tp = _new_token(token, DecodeLanding.of(token, mesh), named)
    else:
        position, cp, tp = _prompt_token(token, Landing.of(token, mesh, plan), named)
    home = mesh.rank(tp=tp, cp=cp, dp=replica, pp=0)
    if token.gpu is not None and token.gpu != home:
        raise ConfigError(
            "token.gpu",
            token.gpu,
            f"is not where position {position} lands (GPU {home})",
            "give one of the two",
        )
    return replica, position, home


def _prompt_token(token: Token, landing: Landing, named: dict[str, int] | None) -> tuple[int, int, int]:
    """(position, cp, tp) of a prompt position; ``named`` are the coordinates of the GPU asked for."""
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


def _new_token(token: Token, landing: DecodeLanding, named: dict[str, int] | None) -> tuple[int, int, int]:
    """(position, cp, tp) of a token that decode adds to the prompt."""
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
        twin = mesh.moved(gpu, Axis.PP, 0)
        raise ConfigError(
            "token.gpu", gpu, f"is in stage {found['pp']}, but tokens land in stage 0", f"try GPU {twin}"
        )
    if token.replica is not None and token.replica != found["dp"]:
        raise ConfigError(
            "token.replica", token.replica, f"does not hold GPU {gpu}", f"try {found['dp']}, or leave it out"
        )
    return found
