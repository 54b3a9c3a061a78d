"""The chapters in order, and one of them as JSON values."""

from __future__ import annotations

from typing import Any

from app.lessons import costs, experts, prompt, recorded, rounds, shards, speed, whole, words
from app.lessons.lesson import Chapter, live_trip
from layouts import build_scene
from tracer.errors import ConfigError, nearest

CHAPTERS: tuple[Chapter, ...] = (
    Chapter("words", "The words, on the smallest mesh", words.words),
    Chapter("one-block", "One MoE block and its gate", experts.one_block),
    Chapter("six-cuts", "Six cuts, one token", whole.six_cuts),
    Chapter("landing", "Three cuts before the first layer", prompt.landing),
    Chapter("zigzag", "Zigzag and causal work", prompt.zigzag_lesson),
    Chapter("layouts", "Whole tokens, then heads", prompt.layouts),
    Chapter("kv-exchange", "K/V travels, queries stay", prompt.kv_exchange_lesson),
    Chapter("merge", "The token is whole again", prompt.merge_lesson),
    Chapter("relay", "Down the rail, then along the row", experts.relay),
    Chapter("dedup", "Two experts, one crossing", experts.dedup),
    Chapter("replicas", "Where replicas meet", experts.replicas),
    Chapter("grouped", "A loop, or one grouped GEMM", speed.grouped),
    Chapter("pipeline", "The slowest link, the rarest send", costs.pipeline),
    Chapter("rounds", "The token comes round", rounds.rounds),
    Chapter("swap", "Swap two axes", costs.swap),
    Chapter("without-sp", "What SP does for experts", costs.without_sp),
    Chapter("dead-work", "Dead work", costs.dead_work_lesson),
    Chapter("roofline", "What keeps the arithmetic busy", speed.roofline),
    Chapter("overlap", "Two batches hide each other", speed.overlap),
    Chapter("decode", "In decode the query travels", whole.decode_lesson),
    Chapter("weights", "Tokens against weights", costs.weights),
    Chapter("when-not", "When weights should stay", speed.when_not),
    Chapter("weights-trip", "A weight's trip", shards.weights_trip),
    Chapter("real", "A real deployment", experts.real),
    Chapter("recorded", "A run that hung", recorded.recorded),
    Chapter("islands", "One island, no crossings", costs.nvlink_domains),
    Chapter("cluster", "Which cuts for which cluster", whole.cluster),
)


def chapter_payload(slug: str) -> dict[str, Any]:
    """A chapter with its trip, ready for the player; an empty slug is the first.

    Raises:
        ConfigError: when there is no such chapter.
    """
    slugs = [chapter.slug for chapter in CHAPTERS]
    if slug and slug not in slugs:
        raise ConfigError("chapter", slug, "is not a chapter", nearest(slug, slugs))
    place = slugs.index(slug) if slug else 0
    lesson = CHAPTERS[place].build()
    question = lesson.question
    return {
        "chapters": [{"slug": each.slug, "title": each.title} for each in CHAPTERS],
        "slug": slugs[place],
        "title": CHAPTERS[place].title,
        "read": list(lesson.read),
        "question": {
            "ask": question.ask,
            "options": list(question.options),
            "answer": question.answer,
            "explain": question.explain,
        },
        "after": lesson.after,
        "hop": lesson.hop,
        "reveal": lesson.reveal,
        **live_trip(lesson.trip, build_scene(lesson.trip), lesson.query, lesson.reveal),
    }
