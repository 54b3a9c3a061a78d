"""Every row that a step moves: of one prefill, or of one decode step.

A prefill has the prompts of all replicas, their padding, and the dummies of idle replicas. A decode step
has a new token of each request, and dummies in the other slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError, whole_number
from tracer.proof.replay.layer.maths import BoolArray, IntArray
from tracer.scenario.landing import Landing
from tracer.scenario.plan import PromptCut
from tracer.trip.itinerary import Rider

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


NO_PICKS: Mapping[int, tuple[int, ...]] = {}


@dataclass(frozen=True, slots=True)
class ReplayBatch:
    """The rows of a step, ascending by id; every array is ``[rows]`` int64 unless said.

    A prompt's token has id ``replica · span + position``; padding and dummy rows have the negative id
    ``-1 - (replica · span + position)``, so that no sum over tokens can count them by accident.
    ``index_in_cp`` is a row's place among the rows of its CP rank, ``cp`` that rank's coordinate,
    ``home`` the row's stage-0 rank, ``words`` its vocabulary entry,
    ``to_head`` ``[rows]`` bool whether the LM head reads it: T-1, or every token for prompt logprobs.
    """

    prompts: tuple[int, ...]
    span: int
    ids: IntArray
    replica: IntArray
    position: IntArray
    cp: IntArray
    index_in_cp: IntArray
    share: IntArray
    home: IntArray
    words: IntArray
    to_head: BoolArray

    @classmethod
    def of(cls, scenario: Scenario, prompts: Sequence[int] | None, seed: int, room: int = 0) -> ReplayBatch:
        """Prompts of a scenario: all of its length, or one length a replica (0: idle).

        Ids leave ``room`` for so many new tokens per prompt. An idle replica runs a dummy batch: one row on
        each rank that a token can land on.

        Raises:
            ConfigError: when the lengths do not fit the replicas, or all are idle.
        """
        lengths = prompt_lengths(scenario, prompts)
        landings = [landing_of(scenario, length) for length in lengths]
        span = max(landing.padded for landing in landings) + room
        tables = [_rows_of(scenario, replica, landing) for replica, landing in enumerate(landings)]
        replica, position, cp, index, share, home = np.concatenate(tables, axis=1)
        limits = np.array(lengths)[replica]
        place = replica * span + position
        ids = np.where(position < limits, place, -1 - place)
        words = np.where(position < limits, _words(scenario, lengths, span, seed)[replica, position], 0)
        read = (position < limits) & (scenario.token.prompt_logprobs | (position == limits - 1))
        order = np.argsort(ids)
        return cls(
            prompts=lengths,
            span=span,
            ids=ids[order],
            replica=replica[order],
            position=position[order],
            cp=cp[order],
            index_in_cp=index[order],
            share=share[order],
            home=home[order],
            words=words[order],
            to_head=read[order],
        )

    @property
    def real(self) -> BoolArray:
        """Which rows are tokens of a prompt, ``[rows]`` bool."""
        return self.ids >= 0

    def rows_of(self, ids: IntArray) -> IntArray:
        """Row number of each id, which must be in the batch."""
        return np.searchsorted(self.ids, ids)

    def row_of(self, token: int) -> int:
        """Row number of one id, which must be in the batch."""
        return int(np.searchsorted(self.ids, token))

    def id_of(self, replica: int, position: int) -> int:
        """Id of a prompt's token."""
        return replica * self.span + position

    def riders(self) -> list[Rider]:
        """What each row's itinerary depends on; picks are the router's to make."""
        columns = zip(self.position.tolist(), self.home.tolist(), self.to_head.tolist(), strict=True)
        return [Rider(position, home, to_head, NO_PICKS) for position, home, to_head in columns]


def prompt_lengths(scenario: Scenario, prompts: Sequence[int] | None) -> tuple[int, ...]:
    """Length of each replica's prompt, 0 for an idle one.

    Raises:
        ConfigError: when the lengths do not fit the replicas, or all are idle.
    """
    replicas = scenario.mesh.dp
    if prompts is None:
        return (scenario.token.prompt,) * replicas
    for replica, length in enumerate(prompts):
        whole_number(f"prompts[{replica}]", length, at_least=0)
    if len(prompts) != replicas or not any(prompts):
        raise ConfigError(
            "prompts",
            list(prompts),
            f"must give a length for each of the {replicas} replicas, not all of them 0",
            f"try {[scenario.token.prompt] * replicas}",
        )
    return tuple(prompts)


def landing_of(scenario: Scenario, length: int) -> Landing:
    """How a replica's prompt is cut; an idle replica's dummy batch is as long as a prompt of one token."""
    size_of, zigzag = scenario.mesh.size_of, scenario.plan.landing is PromptCut.ZIGZAG
    return Landing(max(1, length), size_of("cp"), size_of("tp"), zigzag=zigzag)


def _rows_of(scenario: Scenario, replica: int, landing: Landing) -> IntArray:
    """A replica's rows as columns ``[6, rows]``: replica, position, cp, index there, rows there, home.

    Rows are listed rank by rank in the order of landing, so the index counts up along a CP rank.
    """
    rows = []
    share = landing.padded // landing.cp
    for cp in range(landing.cp):
        index = 0
        for tp in range(landing.tp):
            home = scenario.mesh.rank(tp=tp, cp=cp, dp=replica, pp=0)
            for run in landing.positions_on(cp, tp):
                rows += [(replica, p, cp, index + i, share, home) for i, p in enumerate(run)]
                index += len(run)
    return np.array(rows, dtype=np.int64).T


def _words(scenario: Scenario, lengths: Sequence[int], span: int, seed: int) -> IntArray:
    """Vocabulary entries ``[replicas, span]``: each replica's prompt is drawn apart."""
    vocab = scenario.model.need("vocab", "draw prompts")
    return np.stack(
        [np.random.default_rng((seed, replica)).integers(vocab, size=span) for replica in range(len(lengths))]
    )


def decode_batch(
    scenario: Scenario, prompts: Sequence[int], span: int, words: Mapping[int, int]
) -> ReplayBatch:
    """The step at the scenario's position: one request per replica with a prompt, in the scenario's slot.

    ``words`` are the tokens that enter, by replica. All other slots of every CP rank's padded batch hold
    dummies with negative ids, ``-1 - n`` for the n-th slot of all.
    """
    landing, mesh = scenario.decode_landing, scenario.mesh
    slot, position = scenario.slot or 0, scenario.position
    rows, number = [], 0
    for replica, length in enumerate(prompts):
        for cp in range(landing.cp):
            for place in range(landing.padded):
                number += 1
                real = length > 0 and cp == landing.cp_of(position) and place == slot
                home = mesh.rank(tp=place // landing.rows_per_rank, cp=cp, dp=replica, pp=0)
                token = replica * span + position if real else -number
                word = words[replica] if real else 0
                rows.append((token, replica, position, cp, place, landing.padded, home, word, int(real)))
    columns = np.array(sorted(rows), dtype=np.int64).T
    ids, replicas, positions, cps, places, share, homes, tokens, read = columns
    return ReplayBatch(
        tuple(prompts), span, ids, replicas, positions, cps, places, share, homes, tokens, read.astype(bool)
    )
