"""hypothesis draws the words of a framework's launch: mostly known flags, some odd values, some nonsense."""

from __future__ import annotations

from hypothesis import strategies as st

from tracer.frameworks.flags import Flag, Kind
from tracer.frameworks.registry import framework

SMALL = st.sampled_from(["1", "2", "2", "2", "3", "4", "4", "8", "16"])
ODD = st.sampled_from(
    [
        "0", "-1", "9" * 30, "9" * 5000, "1e3", "", "$TP", "true", "None", "٣", "1_0", "{}", "[1",
        '{"dwdp_size": 4}', "HELIX", "round_robin", "deepep", "x" * 300, "1.1.0", "--", "-",
        "tp-dp-pp", "a\x00b", "1000000000",
    ]
)  # fmt: skip


def value_of(flag: Flag) -> st.SearchStrategy[str]:
    likely = SMALL
    if flag.choices:
        likely = st.sampled_from(flag.choices)
    elif flag.dest == "order":
        likely = st.permutations(["tp", "cp", "ep", "dp", "pp"]).map("-".join)
    elif flag.dest == "cp_config":
        likely = st.sampled_from(['{"cp_type": "HELIX"}', '{"cp_type": "ATTN2D"}', '{"cp_type": 3}'])
    elif flag.kind is Kind.JSON:
        number = st.sampled_from(["2", "4", "0", '"x"', "null", "1.5", "true"])
        keys = ["num_redundant_experts", "dwdp_size", "num_groups", "num_experts_per_worker"]
        likely = st.dictionaries(st.sampled_from(keys), number, max_size=3).map(
            lambda table: "{" + ", ".join(f'"{key}": {value}' for key, value in table.items()) + "}"
        )
    return st.one_of(likely, likely, likely, ODD)


@st.composite
def words(draw: st.DrawFn, name: str) -> list[str]:
    """Words of a launch: mostly known flags with small values, some odd ones, some nonsense."""
    known, found = framework(name), []
    for _ in range(draw(st.integers(0, 7))):
        flag = draw(st.sampled_from(known.flags))
        spelling = draw(st.sampled_from(flag.spellings))
        if flag.kind in (Kind.SWITCH, Kind.ON_OFF):
            found.append(draw(st.sampled_from([spelling, spelling, spelling, f"{spelling}=false"])))
            continue
        value = draw(value_of(flag))
        found += [f"{spelling}={value}"] if draw(st.booleans()) else [spelling, value]
    if draw(st.integers(0, 4)) == 0:
        found.insert(draw(st.integers(0, len(found))), draw(st.one_of(ODD, st.text(max_size=12))))
    return found
