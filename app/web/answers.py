"""What comes back to a page: a status, a type and bytes; an error as its parts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from app.query.refusal import refusal

if TYPE_CHECKING:
    from app.pages import Payload
    from tracer.errors import ConfigError

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes back: a status of HTTP, the type of what is in it, and the bytes; ``name`` of a download."""

    status: int
    kind: str
    body: bytes
    name: str = ""


def as_json(payload: Payload, status: int = HTTPStatus.OK) -> Answer:
    """An answer of JSON, in the same bytes wherever it is written."""
    text = json.dumps(payload, separators=(",", ":")) + "\n"
    return Answer(int(status), JSON, text.encode("ascii"))


def error_payload(error: ConfigError) -> Payload:
    """An error as its parts, and as the sentence that joins them."""
    return {"error": refusal(error)}
