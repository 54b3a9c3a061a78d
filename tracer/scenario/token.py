"""Which token is followed, and in which phase of serving."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tracer.errors import ConfigError, check_bool, whole_number

MAX_TEXT = 64


class Phase(StrEnum):
    """Whether the token is read, as part of a prompt, or generated."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Token:
    """Which token is followed: a position of a replica's prompt, or the first that lands on a GPU.

    ``prompt`` is the prompt's length; ``prompt_logprobs`` sends every position through the LM head;
    ``draft_head`` (EAGLE, MTP) reads every final row, so nothing of the last layer is dead work.
    In decode the position is the prompt's length or more; new tokens go round the CP ranks from
    ``first_cp``, and this one has ``slot`` among the ``batch`` tokens (None: tp) that its CP rank decodes
    in a step. ``text`` is what the token says, where a recording of it does.

    Raises:
        ConfigError: naming ``token.<field>``.
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
    text: str | None = None

    def __post_init__(self) -> None:
        whole_number("token.prompt", self.prompt)
        whole_number("token.first_cp", self.first_cp, at_least=0)
        if self.batch is not None:
            whole_number("token.batch", self.batch)
        for name in ("replica", "position", "gpu", "slot"):
            if getattr(self, name) is not None:
                whole_number(f"token.{name}", getattr(self, name), at_least=0)
        text: object = self.text
        if text is not None and not (isinstance(text, str) and len(text) <= MAX_TEXT):
            rule = f"must be text of at most {MAX_TEXT} letters"
            raise ConfigError("token.text", str(text)[:MAX_TEXT], rule, "shorten it")
        for name in ("prompt_logprobs", "draft_head"):
            check_bool(f"token.{name}", getattr(self, name))
