"""Wrong, odd and huge values, and what they make of scenarios, texts, files and command lines."""

from __future__ import annotations

import copy
import math
import tomllib
from typing import Any

from draws import draws
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from app.query.address import preset_tables
from tracer.scenario.files import load_scenario, preset_names
from tracer.scenario.plan import CHOICES
from tracer.scenario.read import PLAIN, TABLES

Table = dict[str, Any]


def inputs(share: float) -> settings:
    """This test's share of its kind's inputs: of 2,000 in `make test`, of 10,000 in `make fuzz`."""
    return settings(max_examples=draws(round(share * 2_000)), suppress_health_check=list(HealthCheck))


SMALL = [1, 2, 2, 3, 4, 4, 8, 16]
HUGE = [10**5, 10**6, 10**6 + 3, 10**9, 10**12, 2**31, 2**63, 2**64 + 1, 10**30]
ODD_NUMBERS = [0, -1, -(10**12), True, False, 0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf]
ODD_TEXTS = [
    "", " ", "x", "-1", "٣", "１", "1_0", "1e3", "None", "null", "true", "NaN", "..", "../../etc/passwd",
    "/dev/zero", "a\x00b", "\u202e", "\ud7ff", "é" * 200, "<script>alert(1)</script>", "{{7*7}}", "%s%n",
    "9" * 30, "9" * 5000, "tp-cp-dp-pp", "pp-tp", "six-cuts", "--", "[1", "$(id)", "';--",
]  # fmt: skip
KNOWN_WORDS = [
    *sorted({str(word) for words in CHOICES.values() for word in words}),
    "decode", "prefill", "bf16", "fp8", "fp32", "h100", "h200", "b200", "gb200", "linear", "round_robin",
    "table", "first", "refuse", "megatron", "tp-cp-pp-dp", "deepseek-v3", "mixtral-8x7b", "end",
]  # fmt: skip
SHAPES: list[Any] = [
    None, [], {}, [0], [1, 2, 3], [[0, 0], [0, 1]], [10**12], [None], ["a"], {"1": [0]}, {"": 1},
    {"1": [0, 1], "2": [1, 0]}, {"a": {"b": {"c": []}}}, list(range(64)), [[[]]], {"٣": [1]}, [True, 2],
    {"999999999": [0]}, {"config": "/etc/passwd"}, {"preset": "mixtral-8x7b"}, {"preset": ["x"]},
]  # fmt: skip

texts = st.sampled_from(
    [*(str(value) for value in (*SMALL, *SMALL, *HUGE, *ODD_NUMBERS)), *KNOWN_WORDS, *ODD_TEXTS]
)
numbers = st.sampled_from([*SMALL, *SMALL, *HUGE, *ODD_NUMBERS])
values = st.one_of(
    st.sampled_from(SMALL), numbers, st.sampled_from(KNOWN_WORDS), st.sampled_from(ODD_TEXTS),
    st.sampled_from(SHAPES),
)  # fmt: skip

_EVERY_KEY = load_scenario("six-cuts").to_dict()
PICKS_KEYS = ("1", "2", "8", "0", "99", "-1", "x")
KEYS_OF = {
    "mesh": tuple(_EVERY_KEY["mesh"]), "cluster": tuple(_EVERY_KEY["cluster"]),
    "token": tuple(_EVERY_KEY["token"]), "dtype": tuple(_EVERY_KEY["dtype"]),
    "placement": (*_EVERY_KEY["placement"], "redundant", "redundant_at"),
    "model": (*_EVERY_KEY["model"], "config", "preset"), "picks": PICKS_KEYS,
}  # fmt: skip
PATHS = [
    *((table, key) for table, keys in KEYS_OF.items() for key in (*keys, "nonsense")),
    *(("", key) for key in (*PLAIN, *TABLES, "nonsense")),
]
LIKELY = [("mesh", key) for key in ("tp", "cp", "dp", "pp", "ep", "etp")] + [
    ("token", "position"), ("token", "prompt"), ("model", "layers"), ("model", "experts"), ("model", "top_k"),
    ("cluster", "gpus_per_node"), ("cluster", "nodes"), ("", "phase"),
]  # fmt: skip
#: All axes and both kinds of layer on eight GPUs: what is drawn most, for it costs least.
TINY = """
[cluster]
gpus_per_node = 2
[model]
layers = 3
hidden = 64
heads = 4
kv_heads = 2
head_dim = 16
experts = 8
top_k = 2
expert_hidden = 32
dense_layers = 1
dense_hidden = 64
vocab = 100
[mesh]
tp = 2
dp = 2
pp = 2
ep = 4
[token]
replica = 1
position = 3
"""
BASES = [tomllib.loads(TINY)] * 60 + [preset_tables(name) for name in preset_names()]
#: What a preset states that a changed mesh would contradict.
FREED = (("cluster", "nodes"), ("token", "gpu"), ("token", "position"), ("token", "replica"))


@st.composite
def scenarios_gone_wrong(draw: st.DrawFn) -> Table:
    """The tables of a preset with one to four keys set to anything."""
    tables = copy.deepcopy(draw(st.sampled_from(BASES)))
    if draw(st.booleans()):
        for table, key in (*FREED, ("", "picks")):
            (tables.get(table, {}) if table else tables).pop(key, None)
    for _ in range(draw(st.integers(1, 4))):
        table, key = draw(st.sampled_from(LIKELY if draw(st.booleans()) else PATHS))
        _set(tables, table, key, copy.deepcopy(draw(values)))
    return tables


def _set(tables: Table, table: str, key: str, value: Any) -> None:
    if not table:
        tables[key] = value
    elif isinstance(tables.setdefault(table, {}), dict):
        tables[table][key] = value


PIECES = [
    b"", b"\x00", b"\xff\xfe", b"\n", b'"', b"'", b"[", b"]", b"{", b"}", b"=", b"#", b",", b"nan", b"1e999",
    b"[[mesh]]", b"[mesh]\n", b"9" * 5000, b"{" * 3000, b"[" * 3000, b"\xc3", b"\xed\xa0\x80", b"\\ud800",
    b"<!--", b"-->", b"e", b"-", b"0", b"true",
]  # fmt: skip


@st.composite
def spliced(draw: st.DrawFn, data: bytes) -> bytes:
    """The same bytes cut short, or with a piece put in, or written over."""
    at = draw(st.integers(0, len(data)))
    if draw(st.integers(0, 3)) == 0:
        return data[:at]
    piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)))
    over = draw(st.sampled_from([0, len(piece), 16]))
    return data[:at] + piece + data[at + over :]
