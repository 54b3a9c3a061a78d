"""The HTML of a site's pages: the explorer's frame, its own scripts, and nothing of Dash."""

from __future__ import annotations

from html import escape

from app.pages import PAGES, Page

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "frame-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)
"""As the server's. Styles that scripts set need 'unsafe-inline'; Python needs 'wasm-unsafe-eval'."""
HTML = """<!DOCTYPE html>
<html lang="en" data-page="{word}" data-base="{base}" data-files{more}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{base}/{style}">
<script src="{base}/{site}"></script>
<script src="{base}/{script}"></script>
</head>
<body>
<div id="explorer">
<header class="top">
<a class="brand" href="{base}/">tokentrip</a>
<button id="menu" type="button">Menu</button>
<nav aria-label="Pages">{links}</nav>
<button id="theme" type="button">Theme: system</button>
</header>
<main id="main"><div id="page" class="page"></div></main>
</div>
<noscript><img src="{base}/pictures/{picture}.svg" alt="One token's trip"></noscript>
</body>
</html>
"""
EMBEDDED = "live"
"""The folder of the trip without the frame's header, for an iframe."""


def site_html(
    page: Page,
    shown: tuple[Page, ...],
    files: dict[str, str],
    *,
    start: str,
    picture: str,
    embedded: bool = False,
) -> str:
    """A page's HTML; ``files`` name its script, style and site script; ``start`` is its first query."""
    base = "." if page.path == "/" and not embedded else ".."
    more = f' data-report="{escape(page.name)}"' if page.report else ""
    more += f' data-start="{escape(start)}"' if start else ""
    more += " data-embedded" if embedded else ""
    return HTML.format(
        word=escape(page.word),
        base=base,
        more=more,
        policy=POLICY,
        title=escape(page.title),
        links="".join(_link(each, base) for each in shown),
        picture=escape(picture),
        **files,
    )


def _link(page: Page, base: str) -> str:
    href = f"{base}/" if page.path == "/" else f"{base}{page.path}/"
    mesh = " data-mesh" if page.one_mesh else ""
    return f'<a class="nav-link" id="nav-{page.word}" href="{href}"{mesh}>{escape(page.name)}</a>'


def page_of(word: str) -> Page | None:
    """The page of a word such as ``traffic``."""
    return next((page for page in PAGES if page.word == word), None)
