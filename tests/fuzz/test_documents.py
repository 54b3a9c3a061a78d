"""Blocks of Markdown documents: any words in any place, checked and filled."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.drawn import ODD_TEXTS, TINY, inputs, spliced
from tests.fuzz.judge import command

WORDS = st.sampled_from(
    [
        "counts", "table", "log", "picture", "six-cuts", "six-cuts-decode", "hop=0", "hop=3", "hop=999",
        "hop=9999999999999999999", "hop=-1", "file=a.svg", "file=../a.svg", "file=/a.svg", "file=a.png",
        "file=", "=", "a=b=c", "gone.toml", "own.toml", "/etc/passwd", "/dev/zero", "..", "pictures",
        "file=/dev/null/a.svg", "file=\x00.svg", "file=" + "x" * 300 + ".svg", *ODD_TEXTS,
    ]
)  # fmt: skip
OPEN = ["<!-- tokentrip:", "<!-- tokentrip: ", "<!--tokentrip:", "<!-- tokentrip"]
ENDS = ["<!-- /tokentrip -->", "<!-- /tokentrip", "", "<!-- /tokentrip -->\n" * 2]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Text, blocks with a few words each, some of them sound, some never closed."""
    parts = [draw(st.sampled_from(["", "# A title\n\n", "text " * 50, "```\n"]))]
    for _ in range(draw(st.integers(1, 3))):
        sound = draw(st.booleans())
        kind = draw(st.sampled_from(["counts", "log", "table", "picture"])) if sound else draw(WORDS)
        more = [] if draw(st.booleans()) else draw(st.lists(WORDS, max_size=2))
        head = " ".join([kind, "own.toml" if sound else draw(WORDS), *more])
        opening = OPEN[0] if draw(st.integers(0, 3)) else draw(st.sampled_from(OPEN))
        end = ENDS[0] if draw(st.integers(0, 3)) else draw(st.sampled_from(ENDS))
        parts.append(f"{opening} {head} -->\nold\n{end}\n")
    return "".join(parts)


@inputs(1)
@given(text=documents(), verb=st.sampled_from(["--check", "--check", "--fill"]), data=st.data())
def test_any_document(folder: Path, text: str, verb: str, data: st.DataObject) -> None:
    whole = text.encode("utf-8", "surrogatepass")
    (folder / "own.toml").write_text(TINY)
    (folder / "any.md").write_bytes(data.draw(spliced(whole)) if data.draw(st.integers(0, 3)) == 0 else whole)
    command("export", verb, "any.md")
