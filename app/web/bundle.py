"""The explorer's own scripts and styles, each kind as one file: thirty requests would wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import flask

if TYPE_CHECKING:
    from typing import Self

ASSETS = files("app") / "assets"
TYPES = {"js": "text/javascript", "css": "text/css"}
YEAR_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files of a kind ("js" or "css") in ``app/assets``, in the order of their names."""

    kind: str
    text: str

    @classmethod
    def of(cls, kind: str) -> Self:
        """Join the files of a kind."""
        parts = {part.name: part for part in ASSETS.iterdir() if part.name.endswith(f".{kind}")}
        return cls(kind, "\n".join(parts[name].read_text(encoding="utf-8") for name in sorted(parts)))

    @property
    def address(self) -> str:
        """Where it is served: the address changes with the text, so the text may be kept for a year."""
        return f"/tokentrip-{sha256(self.text.encode()).hexdigest()[:16]}.{self.kind}"

    def register(self, server: flask.Flask) -> None:
        """Serve it."""
        server.add_url_rule(self.address, f"bundle_{self.kind}", self.answer)

    def answer(self) -> flask.Response:
        """The file."""
        answer = flask.Response(self.text, mimetype=TYPES[self.kind])
        answer.headers["Cache-Control"] = f"public, max-age={YEAR_S}, immutable"
        return answer
