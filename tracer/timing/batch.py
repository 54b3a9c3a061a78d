"""What one forward pass of one GPU's own requests works on."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.errors import whole_number, word_of
from tracer.scenario.token import Phase


@dataclass(frozen=True, slots=True)
class TimedBatch:
    """``sequences`` requests, each with ``new`` tokens to compute and ``past`` tokens already cached.

    Decode computes one new token a sequence (more with a draft). Attention is causal.

    Raises:
        ConfigError: for counts that are not whole, or an unknown phase.
    """

    sequences: int
    new: int
    past: int = 0
    phase: Phase = Phase.PREFILL

    def __post_init__(self) -> None:
        whole_number("batch.sequences", self.sequences)
        whole_number("batch.new", self.new)
        whole_number("batch.past", self.past, at_least=0)
        object.__setattr__(self, "phase", word_of("batch.phase", self.phase, Phase))

    @classmethod
    def prompts(cls, length: int, sequences: int = 1) -> TimedBatch:
        """Whole prompts of one length."""
        return cls(sequences, length)

    @classmethod
    def decoding(cls, sequences: int, context: int) -> TimedBatch:
        """One step of ``sequences`` requests that have ``context`` tokens cached."""
        return cls(sequences, 1, context, Phase.DECODE)

    @property
    def tokens(self) -> int:
        """Rows that the matrices multiply."""
        return self.sequences * self.new

    @property
    def pairs(self) -> int:
        """(query, key) pairs under the causal mask: each new token sees the past and itself and before."""
        return self.sequences * (self.new * self.past + self.new * (self.new + 1) // 2)

    @property
    def cached_tokens(self) -> int:
        """Tokens whose K/V attention reads, new ones included."""
        return self.sequences * (self.past + self.new)
