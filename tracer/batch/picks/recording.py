"""Picks of one request as it was recorded: a row a token, with the token's text where the file has it.

Sources of the shapes: vLLM ``entrypoints/openai/*/protocol.py`` 0.33 (``choices[i].routed_experts``: base64
of an ``.npy`` ``[tokens - 1, layers, k]`` from ``routed_experts_prompt_start`` on; before 0.22 nested lists,
the prompt's apart); SGLang ``state_capturer/routed_experts.py`` 0.5.23 (``meta_info.routed_experts``: base64
of int32); trainers that replay a rollout's routing (R3, arXiv 2510.11370) keep ``[tokens, layers, k]`` a
sample under ``routed_experts`` or ``rollout_routed_experts``, beside ``tokens``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.npy import load_arrays
from tracer.batch.picks.recorded import from_megatron, from_sglang, integers
from tracer.batch.picks.source import InMemory
from tracer.errors import ConfigError, whole_number

if TYPE_CHECKING:
    from tracer.batch.picks.source import Picks
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario

FIELD = "routed_experts"
SAMPLES = ("rollout_routed_experts", "routed_experts", "routing_indices")
_MAX_WORDS = 1 << 22


@dataclass(frozen=True, eq=False)
class RecordedRequest:
    """Picks of one request. ``picks``: ``[layers, rows, k]``; row r is the token at position ``first + r``.

    ``words`` are the tokens' texts (or ids as text) by position from 0, None where the file does not say. The
    first ``repeated`` rows are those of a prompt that an earlier answer of the same request has too.
    ``prompt`` is how many tokens were asked, where the file says it: those after it were decoded.
    """

    picks: Picks
    words: tuple[str | None, ...] = ()
    first: int = 0
    repeated: int = 0
    prompt: int | None = None

    @property
    def tokens(self) -> int:
        """Positions that the request has: those before the first row, the rows, and the last token."""
        return max(self.first + int(self.picks.shape[1]), len(self.words))

    def word(self, position: int) -> str | None:
        """Text of the token at a position, where the file says it."""
        return self.words[position] if position < len(self.words) else None

    def picks_at(self, position: int, model: ModelSpec) -> dict[int, tuple[int, ...]]:
        """Experts that the token at a position picked, by layer number.

        Raises:
            ConfigError: for a position that was not recorded, or rows that are not of the model's layers.
        """
        whole_number("position", position, at_least=0)
        rows = self.picks.shape[1]
        if not self.first <= position < self.first + rows:
            last = position == self.first + rows and position < self.tokens
            why = "; the last token that was sampled never went through the model" if last else ""
            raise ConfigError(
                "position",
                position,
                f"has no recorded picks: the file has positions {self.first} to {self.first + rows - 1}{why}",
                f"try --position {self.first + rows - 1}",
            )
        found = self.picks[:, position - self.first]
        if (found < 0).any():
            rule = "was served from the prefix cache, and its picks were not recorded (-1)"
            raise ConfigError("position", position, rule, "take a later position")
        layers = _layers_of_rows(model, len(found))
        return {layer: tuple(found[row].tolist()) for row, layer in layers}


def with_length(
    scenario: Scenario, recording: RecordedRequest, *, position: int | None = None, prompt: int | None = None
) -> Scenario:
    """The scenario with the recorded tokens as its prompt, following one of them (its own by default).

    In decode the followed token is new: the prompt is what came before it. ``prompt`` overrules the length.

    Raises:
        ConfigError: for a position that the prompt has not.
    """
    last = recording.first + int(recording.picks.shape[1]) - 1
    own = min(max(scenario.position, recording.first), last)
    place = own if position is None else whole_number("position", position, at_least=0)
    length = prompt or (max(1, place) if scenario.decodes else recording.tokens)
    if not scenario.decodes and place >= length:
        rule = f"is not among the {length:,} tokens of the request"
        raise ConfigError("position", place, rule, f"try --position {length - 1}")
    token = replace(
        scenario.token,
        prompt=length,
        position=place,
        gpu=None,
        replica=scenario.replica,
        slot=None,
        text=None,
    )
    return scenario.with_(token=token, picks=())


def follow_recording(scenario: Scenario, recording: RecordedRequest) -> Scenario:
    """The scenario with the picks, and the text, that were recorded for the token it follows.

    Raises:
        ConfigError: for a position that was not recorded, or picks of another model.
    """
    picks = recording.picks_at(scenario.position, scenario.model)
    token = replace(scenario.token, text=recording.word(scenario.position))
    return scenario.with_(picks=tuple(picks.items()), token=token)


def phase_note(scenario: Scenario, recording: RecordedRequest) -> str | None:
    """What to say of a decoded token that is followed as one of a prefill."""
    asked = recording.prompt
    if asked is None or scenario.decodes or scenario.position < asked:
        return None
    return (
        f"the prompt had {asked:,} tokens, so this one was decoded; it is followed as one of a prefill "
        f"over all {recording.tokens:,}: --phase decode follows it as it was"
    )


def _layers_of_rows(model: ModelSpec, rows: int) -> list[tuple[int, int]]:
    """(row, layer number) of each MoE layer."""
    moe = [layer for layer in range(1, model.layers + 1) if model.is_moe(layer)]
    if rows == len(moe):
        return list(enumerate(moe))
    if rows == model.layers:
        return [(layer - 1, layer) for layer in moe]
    raise ConfigError(
        "picks",
        f"{rows} layers",
        f"must be one of each of the model's {len(moe)} MoE layers, or of all its {model.layers} layers",
        "take the scenario of the model that was recorded",
    )


def tokens_first(shape: tuple[int, ...], model: ModelSpec) -> bool:
    """Whether an array of three axes is ``[tokens, layers, k]``: only its second axis has the model's layers.

    Raises:
        ConfigError: where both axes could be the layers.
    """
    layers = (model.layers, model.moe_layers)
    first, second = shape[0] in layers, shape[1] in layers
    if first and second:
        raise ConfigError(
            "picks",
            list(shape),
            "may be [layers, tokens, k] or [tokens, layers, k]: both have as many as the model's layers",
            "say which: --format plain is layers first, --format vllm tokens first",
        )
    return second


def read_recordings(value: Any, model: ModelSpec, layout: str = "auto") -> list[RecordedRequest]:
    """Every request of a value that was read from a file.

    Raises:
        ConfigError: for a value that holds no picks, or of another shape.
    """
    if isinstance(value, Mapping):
        return _of_table(value, model, layout)
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [found for each in value for found in read_recordings(each, model, layout)]
    return [RecordedRequest(_array(value, model, layout))]


def _of_table(table: Mapping[Any, Any], model: ModelSpec, layout: str) -> list[RecordedRequest]:
    if "meta_info" in table:
        return [_sglang(table, model)]
    if isinstance(table.get("choices"), list):
        return _vllm(table, model)
    if "choices" in table:
        raise ConfigError(
            "choices", table["choices"], "must be a list of objects", "pass the response as it came"
        )
    if "picks" in table:
        return [RecordedRequest(_array(table["picks"], model, layout), _words(table.get("tokens")))]
    for key in SAMPLES:
        if table.get(key) is not None:
            return _samples(table, key, model, layout)
    raise ConfigError(
        "picks",
        sorted(map(str, table))[:8],
        "has no routed experts",
        "serve with --enable-return-routed-experts and ask for them",
    )


def _samples(table: Mapping[Any, Any], key: str, model: ModelSpec, layout: str) -> list[RecordedRequest]:
    """One array of a request, or a list of one a sample (a trainer's rollout)."""
    value, words = table[key], table.get("tokens")
    several = isinstance(value, list) and bool(value) and (isinstance(value[0], str) or _depth(value[0]) == 3)
    if not several:
        return [RecordedRequest(_encoded(value, model, layout), _words(words))]
    texts = words if isinstance(words, list) and len(words) == len(value) else [None] * len(value)
    return [
        RecordedRequest(_encoded(each, model, layout), _words(text))
        for each, text in zip(value, texts, strict=True)
    ]


def _depth(value: Any) -> int:
    """Axes of an array, or of nested lists."""
    depth = 0
    while isinstance(value, list) and depth < 8:
        value, depth = (value[0] if value else None), depth + 1
    return depth + (value.ndim if isinstance(value, np.ndarray) else 0)


def _encoded(value: Any, model: ModelSpec, layout: str = "auto") -> Picks:
    """``[layers, tokens, k]`` of base64 text (an ``.npy``, or int32 alone), or of an array or lists."""
    if not isinstance(value, str):
        return _array(value, model, "vllm" if layout == "auto" else layout)
    if layout == "sglang" or not value.startswith("k05VTVBZ"):  # base64 of the six bytes \x93NUMPY
        return from_sglang(value, model.layers, model.need("top_k", "cut the picks"))
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(FIELD, value[:40], "is not base64", "pass the field as it came") from error
    found = load_arrays(InMemory(f"{FIELD}.npy", data))["picks"]
    return _array(found, model, "vllm")


def _array(value: Any, model: ModelSpec, layout: str) -> Picks:
    """``[layers, tokens, k]`` of an array in either order, or of one ``[tokens, k]`` a layer."""
    if layout == "megatron":
        return from_megatron(value)
    if layout == "auto" and isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return from_megatron(value) if value[0].ndim == 2 else _array(np.concatenate(value), model, layout)
    array = integers("picks", value, 3)
    if layout == "vllm" or (layout == "auto" and tokens_first(array.shape, model)):
        array = np.ascontiguousarray(array.transpose(1, 0, 2))
    return array


def _sglang(table: Mapping[Any, Any], model: ModelSpec) -> RecordedRequest:
    meta = table["meta_info"]
    found = meta.get(FIELD) if isinstance(meta, Mapping) else None
    if found is None:
        raise ConfigError(
            f"meta_info.{FIELD}",
            None,
            "must be base64 text",
            "serve with --enable-return-routed-experts and ask for return_routed_experts",
        )
    before = [_text_of(entry) for entry in _list(meta.get("input_token_logprobs"))]
    after = [_text_of(entry) for entry in _list(meta.get("output_token_logprobs"))]
    prompt = meta.get("prompt_tokens")
    if type(prompt) is int and len(before) <= prompt <= _MAX_WORDS:  # only the prompt's end may be there
        before = [*([None] * (prompt - len(before))), *before]
    asked = prompt if type(prompt) is int else None
    picks = _encoded(found, model)
    written = meta.get("completion_tokens")
    first = 0
    if asked is not None and type(written) is int:  # rows end one short of the last token written
        first = max(0, asked + written - 1 - int(picks.shape[1]))
    return RecordedRequest(picks, (*before, *after) if before else (), first, prompt=asked)


def _text_of(entry: Any) -> str | None:
    """Text, else id, of SGLang's ``[logprob, id, text]``."""
    if not isinstance(entry, list | tuple) or len(entry) < 2:
        return None
    return str(entry[2])[:64] if len(entry) > 2 and entry[2] is not None else f"id {entry[1]}"


def _vllm(table: Mapping[Any, Any], model: ModelSpec) -> list[RecordedRequest]:
    """Every choice of a vLLM response; before 0.22 the prompt's rows stand apart, before each choice's."""
    prompt = table.get(f"prompt_{FIELD}")
    start = table.get(f"{FIELD}_prompt_start", 0)
    whole_number(f"{FIELD}_prompt_start", start, at_least=0)
    found: list[RecordedRequest] = []
    for number, choice in enumerate(table["choices"]):
        if not isinstance(choice, Mapping):
            raise ConfigError("choices", choice, "must be a list of objects", "pass the response as it came")
        own = choice.get(FIELD)
        parts = [part for part in (prompt, own) if part is not None and len(part)]
        if not parts:
            continue
        arrays = [_encoded(part, model) for part in parts]
        if any(each.shape[0] != arrays[0].shape[0] or each.shape[2] != arrays[0].shape[2] for each in arrays):
            got = list(arrays[-1].shape)
            raise ConfigError(
                f"choices[{number}].{FIELD}", got, "must match the prompt's but in tokens", "mend it"
            )
        before = _prompt_words(table, choice)
        asked = len(before) or _prompt_length(table, start + arrays[0].shape[1] if len(arrays) > 1 else None)
        if asked is not None:
            before = (*before, *([None] * (asked - len(before))))
        words = (*before, *_choice_words(choice)) if before else ()
        repeated = arrays[0].shape[1] if found and len(arrays) > 1 else 0
        found.append(RecordedRequest(np.concatenate(arrays, axis=1), words, start, repeated, asked))
    if not found:
        raise ConfigError(
            "picks",
            sorted(map(str, table))[:8],
            "has no routed experts",
            "serve with --enable-return-routed-experts and ask for them",
        )
    return found


def _prompt_length(table: Mapping[Any, Any], rows: int | None) -> int | None:
    """Tokens that were asked, of a response without their ids: the prompt's own rows, else the usage."""
    usage = table.get("usage")
    said = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    if rows is None and type(said) is int and 0 < said <= _MAX_WORDS:
        return said
    return rows


def _prompt_words(table: Mapping[Any, Any], choice: Mapping[Any, Any]) -> tuple[str | None, ...]:
    """Texts of the prompt's tokens: from its log-probabilities, else its ids."""
    logprobs = _list(table.get("prompt_logprobs") or choice.get("prompt_logprobs"))
    ids = _list(table.get("prompt_token_ids") or choice.get("prompt_token_ids"))
    words = list(_words(ids))
    for place, entry in enumerate(logprobs[: len(words)]):
        own = entry.get(str(ids[place])) if isinstance(entry, Mapping) else None
        if isinstance(own, Mapping) and own.get("decoded_token"):
            words[place] = str(own["decoded_token"])[:64]
    return tuple(words)


def _choice_words(choice: Mapping[Any, Any]) -> tuple[str | None, ...]:
    """Texts of the tokens that were sampled: from their log-probabilities, else their ids."""
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, Mapping):
        content = _list(logprobs.get("content"))
        if content:
            return tuple(str(entry.get("token"))[:64] for entry in content if isinstance(entry, Mapping))
        if _list(logprobs.get("tokens")):
            return _words(logprobs["tokens"])
    return _words(choice.get("token_ids"))


def _words(value: Any) -> tuple[str | None, ...]:
    """Texts as they are; ids as ``id N``."""
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    return tuple(
        word[:64] if isinstance(word, str) else f"id {word}" if isinstance(word, int) else None
        for word in islice(_list(value), _MAX_WORDS)
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
