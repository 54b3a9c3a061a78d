"""Every code block of the README and of the site runs, and prints what it says.

- `python`: blocks without prompts run in order, one namespace a file.
- `pycon`, or `python` with `>>>`: a doctest in that same namespace.
- `console`: a line `$ tokentrip …` runs and must print the lines under it (`...` stands for any text).
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TOKENTRIP = Path(sys.executable).with_name("tokentrip")
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """One fenced block, and the line at which its text starts."""

    language: str
    text: str
    line: int


def documents() -> list[Path]:
    whole = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    return [*whole, *sorted(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)]


def blocks(markdown: str) -> Iterator[Block]:
    for found in FENCE.finditer(markdown):
        yield Block(found["language"], found["text"], markdown.count("\n", 0, found.start()) + 2)


def check_document(markdown: str, name: str, cwd: Path) -> int:
    """Run the blocks in order; the number that ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(markdown):
        where = f"{name}:{block.line}"
        if block.language == "console":
            ran += check_console(block.text, where, cwd)
        elif block.language == "pycon" or (block.language == "python" and ">>> " in block.text):
            check_doctest(block, name, namespace)
            ran += 1
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
            ran += 1
    return ran


def check_doctest(block: Block, name: str, namespace: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.line - 1)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, "".join(report)


def check_console(text: str, where: str, cwd: Path) -> int:
    ran = 0
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        words = shlex.split(command, comments=True)
        if not words or words[0] != "tokentrip":
            continue
        done = subprocess.run(
            [TOKENTRIP, *words[1:]],
            cwd=cwd,
            env=os.environ | {"COLUMNS": "120", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert doctest.OutputChecker().check_output(wanted, done.stdout, FLAGS), (
            f"{where}: $ {command}\nprinted\n{done.stdout}"
        )
        ran += 1
    return ran


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_document_do_what_they_say(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    check_document(path.read_text(), path.name, tmp_path)


@pytest.mark.parametrize(
    ("language", "right", "wrong", "complaint"),
    [
        ("python", "assert 1 + 1 == 2", "assert 1 + 1 == 3, 'unequal'", "unequal"),
        ("pycon", ">>> 1 + 1\n2", ">>> 1 + 1\n3", "line 2(.|\n)*Got:\n +2"),
        ("python", ">>> 1 + 1\n2", ">>> 1 + 1\n3", "line 2(.|\n)*Got:\n +2"),
        (
            "console",
            "$ tokentrip --version\ntokentrip ...",
            "$ tokentrip --version\ntokentrip 99",
            "wrong.md:2",
        ),
    ],
)
def test_a_wrong_block_is_noticed(language: str, right: str, wrong: str, complaint: str, tmp_path: Path):
    assert check_document(f"```{language}\n{right}\n```\n", "right.md", tmp_path) == 1
    with pytest.raises(AssertionError, match=complaint):
        check_document(f"```{language}\n{wrong}\n```\n", "wrong.md", tmp_path)


def test_blocks_of_one_document_share_their_names(tmp_path: Path):
    markdown = "```python\nhops = 3\n```\ntext\n```pycon\n>>> hops\n3\n```\n"
    assert check_document(markdown, "shared.md", tmp_path) == 2
