"""A word of a launch whose value its text does not give, and how it is asked for."""

from __future__ import annotations

from tracer.errors import ConfigError


class Unread(str):
    """A word as typed whose value is not known.

    ``missing`` names the variables that would give it; ``fields`` are the words that it splits into where
    it is a text of several, of which some are known (``"--nnodes 2 --node_rank $RANK"``).
    """

    __slots__ = ("fields", "missing")
    missing: tuple[str, ...]
    fields: tuple[str, ...]

    def __new__(cls, typed: str, missing: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> Unread:
        """The word as typed, and what would give its value."""
        made = super().__new__(cls, typed)
        made.missing = missing
        made.fields = fields
        return made


def unread_error(name: str, word: Unread) -> ConfigError:
    """What is asked for where a value that shapes the mesh is not in the text."""
    if word.missing:
        sets = " ".join(f"--set {variable}=N" for variable in word.missing[:4])
        shown = " and ".join(f"${variable}" for variable in word.missing[:4])
        return ConfigError(
            name, str(word), f"takes {shown}, which nothing in these lines sets", f"add {sets}"
        )
    return ConfigError(
        name,
        str(word),
        "is the output of a command, and nothing is run here",
        "write the number in its place",
    )
