"""A refusal as pages show it: the parts of an error, and one sentence without what nobody typed."""

from __future__ import annotations

from typing import Any

from tracer.errors import ConfigError


def refusal(error: ConfigError) -> dict[str, Any]:
    """The field, the rule, the fix, and the sentence that joins them.

    A value that nobody gave is not quoted: the sentence then says that the field is missing.

    >>> refusal(ConfigError("hardware", None, "must state its FP8 rate", "choose other hardware"))["text"]
    'hardware is not given and must state its FP8 rate; choose other hardware'
    >>> refusal(ConfigError("mesh.ep", 3, "must divide the stage's 16 ranks", "try 2"))["text"]
    "mesh.ep=3 must divide the stage's 16 ranks; try 2"
    """
    text = str(error)
    if error.got is None:
        text = f"{error.field} is not given and {error.rule}; {error.fix}"
    return {"field": error.field, "rule": error.rule, "fix": error.fix, "text": text}
