"""Each framework's flags besides those that shape its mesh: passed over, or said to be left out of a trip.

The list of a framework lies in its folder as ``other_flags.txt``, with the release it was read from:

    version: 0.33.0
    read on: 2026-12-01
    [shapes nothing]
    --host --port --api-key
    [not modelled: a draft model and its steps]
    --speculative-config

A name that ends in ``.*`` stands for every key below it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

_LACKS = re.compile(r"\[not modelled: (.+)\]")


@dataclass(frozen=True, slots=True)
class OtherFlags:
    """Flags that shape nothing, and what a trip lacks for each that is not modelled."""

    version: str = ""
    read_on: str = ""
    shapes_nothing: frozenset[str] = frozenset()
    not_modelled: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Every flag of the list; sections that end in ``.*`` are left out."""
        return frozenset(
            name for name in (*self.shapes_nothing, *self.not_modelled) if not name.endswith(".*")
        )

    def passes_over(self, name: str) -> bool:
        """Whether a flag, or a dotted key of a file, is known to shape nothing."""
        bare = plain(name)
        return _listed(bare, self.shapes_nothing) or (
            bare.startswith("--no-") and _listed(f"--{bare[5:]}", self.shapes_nothing)
        )

    def lacks(self, name: str) -> str:
        """What a trip lacks where this flag is given; empty for any other.

        A name that is listed whole goes before a section that it stands in.
        """
        found = self.not_modelled.get(plain(name), "")
        if not found and plain(name) in self.shapes_nothing:
            return ""
        section = next((key for key in self.not_modelled if key.endswith(".*") and _below(name, key)), None)
        return found or (self.not_modelled[section] if section is not None else "")


def plain(name: str) -> str:
    """A flag or key in the spelling of the lists: ``--a-b``; one dash and one letter stay as they are.

    >>> plain("--max_model_len"), plain("max_model_len"), plain("-q")
    ('--max-model-len', '--max-model-len', '-q')
    """
    bare = name.lstrip("-+").replace("_", "-")
    return name if len(bare) == 1 or name.startswith("---") else f"--{bare}"


def _listed(name: str, known: frozenset[str]) -> bool:
    return plain(name) in known or any(_below(name, key) for key in known if key.endswith(".*"))


def _below(name: str, section: str) -> bool:
    return plain(name).startswith(section[:-1]) or plain(name) == section[:-2]


def read_other_flags(package: str) -> OtherFlags:
    """The list in the folder of a framework's package.

    Raises:
        ValueError: for a line outside of the sections.
    """
    text = (files(package) / "other_flags.txt").read_text(encoding="utf-8")
    head: dict[str, str] = {}
    nothing: set[str] = set()
    lacking: dict[str, str] = {}
    section: str | None = None
    for line in text.splitlines():
        found = _LACKS.fullmatch(line)
        if found or line == "[shapes nothing]":
            section = found.group(1) if found else ""
        elif section is None and ":" in line:
            key, _, value = line.partition(":")
            head[key] = value.strip()
        elif section is None and line.strip():
            raise ValueError(f"{package}: {line!r} stands in no section")
        elif section == "":
            nothing.update(map(plain, line.split()))
        else:
            lacking.update((plain(name), section or "") for name in line.split())
    return OtherFlags(head.get("version", ""), head.get("read on", ""), frozenset(nothing), lacking)
