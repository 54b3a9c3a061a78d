"""Chapters and quiz: every answer is the engine's, and is shown by the hop it asks about."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest

from app.lessons import CHAPTERS, chapter_payload, quiz_payload
from app.web.api import BUILDERS
from tracer import ConfigError


def opened(address: str) -> tuple[dict[str, Any], int]:
    """The trip of an address, as the trip page gets it, and the hop where it opens."""
    query = dict(parse_qsl(address, keep_blank_values=True))
    hop = int(query.pop("hop"))
    return BUILDERS["trip"](query), hop


@pytest.mark.parametrize("slug", [chapter.slug for chapter in CHAPTERS])
def test_a_chapter_asks_before_it_shows(slug: str) -> None:
    lesson = chapter_payload(slug)
    question, hops = lesson["question"], lesson["trip"]["hops"]
    assert question["answer"] in question["options"]
    assert len(set(question["options"])) == len(question["options"]) >= 3
    assert 0 <= lesson["hop"] <= lesson["reveal"] < len(hops)
    text = " ".join([*lesson["read"], lesson["after"], question["ask"], question["explain"]])
    assert "{" not in text
    assert "None" not in text
    assert all(part.rstrip().endswith((".", "?")) for part in [*lesson["read"], lesson["after"]])
    trip, hop = opened(lesson["open"])
    assert (trip["hops"], trip["exports"], hop) == (hops, lesson["exports"], lesson["reveal"])


def test_answers_of_the_reference_trip() -> None:
    answers = {chapter.slug: chapter_payload(chapter.slug)["question"]["answer"] for chapter in CHAPTERS}
    expected = {
        "landing": "GPU 12", "zigzag": "1 and 2", "layouts": "GPU 10", "kv-exchange": "GPUs 8 and 9",
        "merge": "GPU 11", "relay": "GPU 3", "dedup": "1", "replicas": "4", "pipeline": "GPU 27",
        "swap": "26", "without-sp": "2", "dead-work": "2", "islands": "0",
        "six-cuts": "23", "grouped": "10", "roofline": "5,226", "overlap": "+76%", "decode": "GPUs 8 and 9",
        "when-not": "8,349", "cluster": "pure EP",
    }  # fmt: skip
    assert {slug: answers[slug] for slug in expected} == expected


def test_an_unknown_chapter_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a chapter; did you mean 'relay'"):
        chapter_payload("relais")


@pytest.mark.parametrize("seed", range(40))
def test_the_quiz_asks_about_the_hop_it_shows_next(seed: int) -> None:
    quiz = quiz_payload(seed)
    assert quiz == quiz_payload(seed)
    question, hop = quiz["question"], quiz["trip"]["hops"][quiz["reveal"]]
    assert quiz["hop"] == quiz["reveal"] - 1
    trip, opens_at = opened(quiz["open"])
    assert (trip["rows"], trip["hops"], opens_at) == (
        quiz["trip"]["rows"],
        quiz["trip"]["hops"],
        quiz["reveal"],
    )
    assert question["answer"] in question["options"]
    if hop["kind"] in ("dispatch", "combine"):
        assert question["answer"] == str(hop["moves"]["tier"].count("ib"))
    elif hop["kind"] == "pp_send":
        home = int(re.search(r"from GPU (\d+)", question["ask"])[1])  # type: ignore[index]
        moves = hop["moves"]
        assert question["answer"] == f"GPU {moves['dst'][moves['src'].index(home)]}"


def test_a_seed_outside_the_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed_of_quiz=-1 must be from 0"):
        quiz_payload(-1)
