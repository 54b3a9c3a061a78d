"""The colours, named by what they mean, for a light and a dark page."""

from __future__ import annotations

LIGHT = {
    "page": "#fbfbfe",
    "band": "#f2f3f8",
    "box": "#ffffff",
    "edge": "#d9dbe6",
    "ink": "#1c2030",
    "soft": "#5d6378",
    "nvlink": "#1a7b33",
    "ib": "#cf4310",
    "token": "#e32d83",
    "kv": "#6a42e0",
    "tint0": "#eaf1fd",
    "tint1": "#e9f6ef",
    "tint2": "#fdf3e0",
    "tint3": "#f1ecfb",
    "tint4": "#ffffff",
}
DARK = {
    "page": "#12141c",
    "band": "#1a1d29",
    "box": "#20242f",
    "edge": "#3a3f50",
    "ink": "#eef0f8",
    "soft": "#a3a9bd",
    "nvlink": "#4cc76b",
    "ib": "#ff8a57",
    "token": "#ff5ba3",
    "kv": "#a78bfa",
    "tint0": "#1e2a40",
    "tint1": "#1c3129",
    "tint2": "#362c1b",
    "tint3": "#2b2540",
    "tint4": "#20242f",
}

TOKENS = (
    ("#56b4e9", "#000000"),
    ("#e69f00", "#000000"),
    ("#cc79a7", "#000000"),
    ("#f0e442", "#000000"),
    ("#0072b2", "#ffffff"),
    ("#009e73", "#000000"),
    ("#d55e00", "#000000"),
    ("#666666", "#ffffff"),
)
"""Fills of several tokens' dots and the colour of the number in each, the same on light and dark pages.

Seven of the eight hues that Okabe and Ito chose for colour-blind readers (Color Universal Design, 2008),
and a grey for their black, which a dark page would swallow.
"""
