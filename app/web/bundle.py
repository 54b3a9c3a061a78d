"""The explorer's own scripts and styles, each kind as one file: forty requests would wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import flask

from app.es_modules import explorer_script

if TYPE_CHECKING:
    from typing import Self

ASSETS = files("app") / "assets"
TYPES = {"js": "text/javascript", "css": "text/css"}
YEAR_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files of a kind ("js" or "css") as one text."""

    kind: str
    text: str

    @classmethod
    def of_scripts(cls) -> Self:
        """Every module of the explorer. A plain script: it asks for a page's data while Dash still loads."""
        return cls("js", explorer_script())

    @classmethod
    def of_styles(cls) -> Self:
        """The style sheets in the order of their names."""
        parts = {part.name: part for part in ASSETS.iterdir() if part.name.endswith(".css")}
        return cls("css", "\n".join(parts[name].read_text(encoding="utf-8") for name in sorted(parts)))

    @property
    def address(self) -> str:
        """Where it is served: the address changes with the text, so browsers may keep it for a year."""
        return f"/tokentrip-{sha256(self.text.encode()).hexdigest()[:16]}.{self.kind}"

    def register(self, server: flask.Flask) -> None:
        """Serve it."""
        server.add_url_rule(self.address, f"bundle_{self.kind}", self.answer)

    def answer(self) -> flask.Response:
        """The file."""
        answer = flask.Response(self.text, mimetype=TYPES[self.kind])
        answer.headers["Cache-Control"] = f"public, max-age={YEAR_S}, immutable"
        return answer
