"""Causal attention's work on each CP rank."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import tracer
from tracer.memory.causal_work import causal_work, causal_work_text, compare_causal_work, rank_work
from tracer.scenario.landing import Landing

LANDINGS = st.builds(
    Landing,
    prompt=st.integers(1, 200),
    cp=st.integers(1, 8),
    tp=st.integers(1, 4),
    zigzag=st.booleans(),
)


def test_the_published_costs() -> None:
    """1, 3, 5, 7 half-chunk units: zigzag 8 and 8, contiguous 4 and 12."""
    works = compare_causal_work(tracer.load_scenario("six-cuts"))
    assert [rank.units for rank in works["zigzag"].ranks] == [8, 8]
    assert [rank.chunks for rank in works["zigzag"].ranks] == [(0, 3), (1, 2)]
    assert [rank.units for rank in works["contiguous"].ranks] == [4, 12]
    assert works["zigzag"].imbalance == 1
    assert works["contiguous"].imbalance == (33 + 64) * 16 / (64 * 65 / 4)


@given(LANDINGS)
def test_pairs_counted_one_by_one(landing: Landing) -> None:
    work = causal_work(landing)
    pairs = [0] * landing.cp
    padding = [0] * landing.cp
    for position in range(landing.padded):
        cp, _ = landing.place_of(position)
        for _ in range(position + 1):
            (pairs if position < landing.prompt else padding)[cp] += 1
    assert [rank.pairs for rank in work.ranks] == pairs
    assert [rank.padding_pairs for rank in work.ranks] == padding
    assert work.pairs == landing.prompt * (landing.prompt + 1) // 2
    assert work.imbalance >= 1 - 1e-12


@given(LANDINGS)
def test_units_are_blocks_counted_one_by_one(landing: Landing) -> None:
    """A block before the chunk costs two halves, the chunk's own triangle one."""
    for rank in causal_work(landing).ranks:
        units = 0
        for chunk in rank.chunks:
            for before in range(2 * landing.cp):
                units += 2 if before < chunk else 1 if before == chunk else 0
        assert rank.units == units
    assert sum(rank.units for rank in causal_work(landing).ranks) == (2 * landing.cp) ** 2
    assert sorted(c for rank in causal_work(landing).ranks for c in rank.chunks) == list(
        range(2 * landing.cp)
    )


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 4))
def test_zigzag_is_even_where_nothing_is_padded(chunk: int, cp: int, tp: int) -> None:
    """Chunks of equal length: every CP rank has the same pairs, to the last one."""
    landing = Landing(prompt=chunk * tp * 2 * cp, cp=cp, tp=tp)
    assert len({rank.pairs for rank in causal_work(landing).ranks}) == 1


def test_one_rank_of_very_many() -> None:
    landing = Landing(prompt=10**12, cp=10**6, tp=1)
    assert rank_work(landing, 999_999).units == 4 * 10**6


def test_text_names_both_rules_and_padding() -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["token"] |= {"prompt": 61}
    text = causal_work_text(tracer.Scenario.from_dict(tables))
    assert text.splitlines() == [
        "causal work of 61 positions over cp 2, padded by 3 rows",
        "zigzag: the busiest rank does 1.100 of the mean",
        "  CP rank 0: chunks 0 and 3: 1 + 7 = 8 units; 851 pairs, 189 more of padding",
        "  CP rank 1: chunks 1 and 2: 3 + 5 = 8 units; 1,040 pairs",
        "contiguous: the busiest rank does 1.442 of the mean",
        "  CP rank 0: chunks 0 and 1: 1 + 3 = 4 units; 528 pairs",
        "  CP rank 1: chunks 2 and 3: 5 + 7 = 12 units; 1,363 pairs, 189 more of padding",
    ]
