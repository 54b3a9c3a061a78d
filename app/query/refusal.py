"""A refusal as pages show it: the parts of an error, and one sentence."""

from __future__ import annotations

from typing import Any

from tracer.errors import ConfigError


def refusal(error: ConfigError) -> dict[str, Any]:
    """The field, the rule, the fix, and the sentence that joins them.

    >>> refusal(ConfigError("mesh.ep", 3, "must divide the stage's 16 ranks", "try 2"))["text"]
    "mesh.ep=3 must divide the stage's 16 ranks; try 2"
    """
    return {"field": error.field, "rule": error.rule, "fix": error.fix, "text": str(error)}
