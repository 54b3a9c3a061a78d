"""The one error that a user's input can raise, and the checks of single values from outside.

Each check returns the value, or raises a :class:`ConfigError` that names the field.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import isqrt
from typing import TypeVar

Word = TypeVar("Word", bound=StrEnum)

MAX_SIZE = 10**9
"""The largest size that a file or a flag may state: a count of layers, of GPUs, of rows."""

_TRIED = 10_000
MAX_QUOTED = 1_000
"""Characters of a text that an error quotes."""
_LARGEST = sys.float_info.max


class ConfigError(ValueError):
    """A value that breaks a rule, with the fix that would work.

    ``field`` names what was set (``mesh.ep``), ``got`` is the value as given (None where it is missing),
    ``rule`` says what it must satisfy and ``fix`` what to write instead.

    >>> print(ConfigError("mesh.ep", 3, "must divide the stage's 16 ranks", "try 2, 4, 8 or 16"))
    mesh.ep=3 must divide the stage's 16 ranks; try 2, 4, 8 or 16
    >>> print(ConfigError("hardware", None, "must state its FP8 rate", "choose other hardware"))
    hardware is not given and must state its FP8 rate; choose other hardware
    """

    def __init__(self, field: str, got: object, rule: str, fix: str) -> None:
        self.field = field
        self.got = got
        self.rule = rule
        self.fix = fix
        # A value that nobody typed is not quoted.
        said = field if got is None else f"{field}={_shown(got)}"
        if got is None and rule.startswith(("is needed", "must ")):
            said += " is not given and"
        super().__init__(f"{said} {rule}; {fix}")


def _shown(value: object) -> str:
    """``repr`` of the value, cut where it would drown the message; what was typed stands whole for longer."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    text = repr(str(value) if isinstance(value, StrEnum) else value)
    most = MAX_QUOTED if isinstance(value, str) else 120
    return text if len(text) <= most else f"{text[: most - 3]}..."


_MEANINGS = {
    "tp": "tensor tensor_parallel tensor_parallel_size tensor_model_parallel_size tp_size attention_tp",
    "cp": "context context_parallel context_parallel_size cp_size ring",
    "dp": "data data_parallel data_parallel_size dp_size replicas",
    "pp": "pipeline pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size pp_size stages",
    "ep": "expert expert_parallel expert_parallel_size expert_model_parallel_size ep_size",
    "etp": "expert_tensor expert_tensor_parallel expert_tensor_parallel_size moe_tp",
    "edp": "expert_data expert_data_parallel",
    "sp": "sequence sequence_parallel",
    "hidden": "hidden_size d_model dim n_embd",
    "layers": "num_layers num_hidden_layers n_layers n_layer depth",
    "heads": "num_attention_heads num_heads n_heads n_head attention_heads query_heads",
    "kv_heads": "num_key_value_heads num_query_groups n_kv_heads key_value_heads groups",
    "experts": "num_experts n_routed_experts num_local_experts routed_experts",
    "top_k": "topk k num_experts_per_tok experts_per_token moe_router_topk picks_per_token",
    "expert_hidden": "moe_intermediate_size moe_ffn_hidden_size expert_intermediate_size",
    "ffn_hidden": "intermediate_size ffn_hidden_size ffn d_ff",
    "vocab": "vocab_size vocabulary vocabulary_size",
    "shared_experts": "n_shared_experts num_shared_experts",
    "prompt": "seq seq_len sequence_length seq_length prompt_length context_length isl",
    "nodes": "nnodes num_nodes hosts machines",
    "gpus_per_node": "gpus nproc_per_node devices_per_node gpus_in_node",
    "nvlink_bytes_per_s": "nvlink nvlink_bandwidth",
    "ib_bytes_per_s": "ib ib_bandwidth infiniband network_bandwidth",
    "hbm_bytes": "memory hbm gpu_memory vram",
    "hardware": "gpu gpu_type device system",
}
"""Other words for a name: as frameworks and configurations call it, or as people say it."""


def nearest(name: str, known: list[str]) -> str:
    """``did you mean 'x'?`` for what means the same or is spelled closely, else the list of what is known.

    >>> nearest("epp", ["tp", "pp", "ep"]), nearest("num_layers", ["layers", "heads"])
    ("did you mean 'ep'?", "did you mean 'layers'?")
    """
    import difflib

    word = name.lower().replace("-", "_")
    for meant, others in _MEANINGS.items():
        if meant in known and word in others.split():
            return f"did you mean {meant!r}?"
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    if not close:
        return f"known: {', '.join(known)}"
    # Of names that are as close, the one that begins alike: a slip is rarely in the first letter.
    best = max(
        close,
        key=lambda each: difflib.SequenceMatcher(None, name, each).ratio() + 0.1 * (name[:1] == each[:1]),
    )
    return f"did you mean {best!r}?"


def whole_number(
    field: str, value: object, *, at_least: int = 1, at_most: int | None = None, fix: str | None = None
) -> int:
    """``value`` as an int of at least ``at_least``, and at most ``at_most`` where that is given.

    A bool, a float or a string is refused; ``fix`` stands in for the nearest number that is allowed.

    Raises:
        ConfigError: naming ``field``.
    """
    nearest_allowed = at_least
    if isinstance(value, int) and not isinstance(value, bool):
        if value >= at_least and (at_most is None or value <= at_most):
            return value
        nearest_allowed = at_least if at_most is None else max(at_least, min(value, at_most))
    reach = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    meant = _meant_number(value)
    if meant is not None and meant >= at_least and (at_most is None or meant <= at_most):
        fix = f"write {meant} without quotes" if isinstance(value, str) else f"write {meant}"
    raise ConfigError(field, value, f"must be a whole number {reach}", fix or f"try {nearest_allowed}")


def _meant_number(value: object) -> int | None:
    """The whole number that a text or a float stands for, such as ``"2"`` or ``2.0``."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SIZE:
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        return int(value)
    return None


def finite_number(
    field: str,
    value: object,
    *,
    zero: bool = False,
    at_most: float | None = None,
    unit: str = "",
    fix: str | None = None,
) -> float:
    """``value`` as a float above 0 (or 0 itself where ``zero`` allows it), at most ``at_most`` where given.

    A bool, a string, NaN and infinity are refused; ``unit`` is named in the message ("seconds").

    Raises:
        ConfigError: naming ``field``.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        # An int of thousands of digits is finite but has no float; the comparison comes first.
        small = -_LARGEST <= value <= _LARGEST
        if small and (value > 0 or (zero and value == 0)) and (at_most is None or value <= at_most):
            return float(value)
    number = f"number of {unit}" if unit else "number"
    if at_most is None:
        rule = f"must be a finite {number} {'of 0 or more' if zero else 'above 0'}"
    else:
        rule = f"must be a {number} {'from 0 to' if zero else 'above 0 and at most'} {at_most}"
    raise ConfigError(field, value, rule, fix or ("try 0" if zero and at_most is None else "try 1"))


def one_of(field: str, value: object, allowed: tuple[str, ...]) -> str:
    """``value`` when it is one of the allowed words.

    Raises:
        ConfigError: naming ``field`` and the allowed words.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(field, value, f"must be {listed(allowed)}", f"try {allowed[0]!r}")
    return value


def word_of(field: str, value: object, words: type[Word]) -> Word:
    """The member of an enum that a text stands for.

    Raises:
        ConfigError: naming ``field`` and the words there are.
    """
    return words(one_of(field, value, tuple(str(word) for word in words)))


def listed(values: Iterable[object]) -> str:
    """Values as a person lists them.

    >>> listed([2, 4, 8])
    '2, 4 or 8'
    """
    words = [str(value) for value in values]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def divisors(number: int, limit: int = 12) -> list[int]:
    """The first ``limit`` divisors of ``number``, ascending; above 10^8, those up to 10^4 alone.

    >>> divisors(16), divisors(2 * 5003)
    ([1, 2, 4, 8, 16], [1, 2, 5003, 10006])
    """
    root = isqrt(number)
    small = [candidate for candidate in range(1, min(root, _TRIED) + 1) if number % candidate == 0]
    large = [] if root > _TRIED else [number // each for each in reversed(small) if each * each != number]
    return [*small, *large][:limit]


def check_bool(field: str, value: object) -> bool:
    """``True`` or ``False`` and nothing that merely counts as one.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, bool):
        meant = str(value).lower()
        fix = {"true": "true", "yes": "true", "on": "true", "1": "true"}.get(meant, "false")
        quotes = " without quotes" if meant in ("true", "false") else ""
        raise ConfigError(field, value, "must be true or false", f"write {fix}{quotes}")
    return value


def check_text(field: str, value: object) -> str:
    """A string that is not blank.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(field, value, "must be a text that is not blank", "leave the key out instead")
    return value


def check_table(field: str, value: object) -> dict[str, object]:
    """A table (any mapping) whose keys are strings, as a dict.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(field, value, "must be a table of named values", "write it as {key: value, ...}")
    return dict(value)


def check_known_keys(table_name: str, given: dict[str, object], known: list[str]) -> None:
    """Every key of ``given`` is one of ``known``.

    Raises:
        ConfigError: for the first unknown key, with the nearest known one.
    """
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"{table_name}.{key}", value, "is not a known key", nearest(key, known))
