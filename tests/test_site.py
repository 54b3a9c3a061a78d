"""The site's pages: links that lead somewhere, pictures that are up to date, a notebook that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import tokentrip

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?:\]\(|(?:src|srcset|href)=\"|\{download\}`[^`<]*<)([^)\s\">]+)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    whole = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    return [*whole, *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]


def links(markdown: str) -> Iterator[str]:
    """Targets of links and pictures outside fenced blocks."""
    yield from LINK.findall(FENCE.sub("", markdown))


def anchors(markdown: str) -> set[str]:
    """What ``#…`` may name in a page: its headings, as MyST and GitHub spell them."""
    titles = HEADING.findall(FENCE.sub("", markdown))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken_links(path: Path) -> list[str]:
    found = []
    for target in links(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = path.parent / name if name else path
        if not page.exists():
            found.append(f"{path.name}: {target} leads nowhere")
        elif anchor and anchor not in anchors(page.read_text(encoding="utf-8")):
            found.append(f"{path.name}: {target} names no heading")
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_internal_link_leads_somewhere(path: Path):
    assert broken_links(path) == []


def test_a_broken_link_is_noticed(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text('# A *Title*, here\n\n[a](gone.md) [b](#a-title-here) [c](#nothing) <img src="no.svg">\n')
    assert broken_links(page) == [
        "page.md: gone.md leads nowhere",
        "page.md: #nothing names no heading",
        "page.md: no.svg leads nowhere",
    ]


def test_every_page_is_in_a_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    entries = {line.strip() for line in index.splitlines()}
    pages = [
        path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for path in documents()
        if (ROOT / "docs") in path.parents
    ]
    assert [page for page in pages if page != "index" and page not in entries] == []


def test_the_committed_pictures_are_up_to_date():
    pictures = sorted((ROOT / "docs" / "images").glob("*.svg"))
    assert {picture.name for picture in pictures} >= {"six-cuts.svg", "six-cuts.anim.svg"}
    done = CliRunner().invoke(tokentrip, ["export", "--check", *map(str, pictures)])
    assert done.exit_code == 0, done.output


@pytest.mark.filterwarnings("ignore")  # Jupyter's own packages warn of each other
def test_the_notebook_runs_and_shows_what_it_says(tmp_path: Path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs" / "trip.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {cell["id"]: cell["outputs"][0]["data"] for cell in notebook.cells if cell["cell_type"] == "code"}
    assert "image/svg+xml" in shown["trip"]
    assert "<table>" in shown["trip"]["text/html"]
    assert "Trip log: 23/32 GPUs" in shown["trip"]["text/plain"]
    assert shown["counts"]["text/plain"] == "(23, 15, 41)"
    assert "<table>" in shown["mesh"]["text/html"]
    assert shown["census"]["image/svg+xml"].startswith("<svg")
