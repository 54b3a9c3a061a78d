"""A word of a launch whose value its text does not give, and how it is asked for."""

from __future__ import annotations

from tracer.errors import ConfigError


class Unread(str):
    """A word as typed whose value is not known.

    ``missing`` names the variables that would give it; ``fields`` are the words that it splits into where
    it is a text of several, of which some are known (``"--nnodes 2 --node_rank $RANK"``); ``text`` is the
    same text with what is known filled in, for a shell that reads it again.
    """

    __slots__ = ("fields", "missing", "text")
    missing: tuple[str, ...]
    fields: tuple[str, ...]
    text: str

    def __new__(
        cls, typed: str, missing: tuple[str, ...] = (), fields: tuple[str, ...] = (), text: str = ""
    ) -> Unread:
        """The word as typed, and what would give its value."""
        made = super().__new__(cls, typed)
        made.missing = missing
        made.fields = fields
        made.text = text
        return made


def read_again(word: str) -> str:
    """A text for a shell that reads it again: its unknown parts as they were typed.

    >>> read_again(Unread("$CMD", ("P",), text="export P=/x:${P}; python train.py"))
    'export P=/x:${P}; python train.py'
    """
    return word.text or str(word) if isinstance(word, Unread) else word


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
