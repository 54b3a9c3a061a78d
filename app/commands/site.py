"""``tokentrip site``: the explorer as a folder of files."""

from __future__ import annotations

from pathlib import Path

import click

from tracer.display import format_bytes


@click.command("site")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--scenario", metavar="SCENARIO", help="What the pages open with: a preset or a file.")
@click.option("--pages", metavar="PAGE,PAGE", help="Such as trip,mesh,learn; all that can be, by default.")
@click.option(
    "--runtime",
    type=click.Path(path_type=Path),
    help="pyodide's npm package, packed or unpacked; without it npm fetches the pinned one.",
)
@click.option("--check", is_flag=True, help="Say whether OUT is whole and current; exit code 1 if not.")
def site_command(
    out: Path, scenario: str | None, pages: str | None, runtime: Path | None, check: bool
) -> int | None:
    """Write the explorer into a folder for any static host, live without a server.

    Python runs inside the reader's tab; nothing is asked of any other host. OUT is a new folder, or a site
    that was built before.

    \b
    Example:
      tokentrip site public
      tokentrip site public --scenario mine.toml --pages trip,mesh
      tokentrip site --check public
    """
    from app.site.build import DEFAULT_PAGES, build_site, check_site

    if check:
        problems = check_site(out)
        click.echo("\n".join(problems) if problems else f"{out}: whole and current")
        return 1 if problems else 0
    words = DEFAULT_PAGES if pages is None else [each.strip() for each in pages.split(",") if each.strip()]
    say = lambda text: click.echo(f"{text} …", err=True)  # noqa: E731
    size = build_site(out, scenario=scenario, pages=words, runtime=runtime, say=say)
    click.echo(f"wrote {out} ({format_bytes(size)}); try it: python -m http.server -d {out}")
    return None
