"""The explorer: a Dash app made by a factory, stateless, ready for several workers.

``tokentrip app --workers 2`` serves it to several, ``tokentrip:create_server()`` to another WSGI server;
``TOKENTRIP_JOBS`` names a folder that workers share, and long counts then run in the background.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any

import dash
import flask
from dash import html

from app.pages import PAGES, Page, page_at
from app.web.api import EXPORT
from app.web.base_path import VARIABLE as BASE_PATH
from app.web.base_path import below, checked_base_path
from app.web.bundle import Bundle
from app.web.embed import VARIABLE as EMBED
from app.web.embed import register_embed
from app.web.export_api import CARD
from app.web.flask_api import register_api
from app.web.jobs import VARIABLE, job_manager, job_panel, register_jobs
from app.web.security import add_headers

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="data:,">
{%css%}
<script src="SCRIPT"></script>
</head>
<body>
{%app_entry%}
<footer>
{%config%}
{%scripts%}
{%renderer%}
</footer>
</body>
</html>
"""
UNUSED = re.compile(r'<script src="[^"]*/dash/(?:dcc|dash_table)/[^"]*"></script>\s*')
"""Components that Dash adds to every app, and that take longer to start than the explorer's own scripts."""


class Explorer(dash.Dash):
    """Dash with one frame for every page: a router in Dash's callbacks would cost a request more per page."""

    def interpolate_index(self, **parts: str) -> str:  # type: ignore[override]
        """The HTML of a page, with its own title and without scripts that no page uses."""
        page = page_at(flask.request.path)
        parts["title"] = page.title if page else "No such page · tokentrip"
        parts["scripts"] = UNUSED.sub("", parts["scripts"])
        parts["metas"] += preview(page) if page else ""
        text: str = super().interpolate_index(**parts)  # type: ignore[no-untyped-call]
        return text.replace("<html", f"<html{page_data(page)}", 1) if page else text


def preview(page: Page) -> str:
    """What chats and search engines show of a link: the page's name and, of a trip, its social card."""
    request = flask.request
    address = request.url_root.rstrip("/")
    said = {"og:site_name": "tokentrip", "og:type": "website", "og:title": page.title}
    if page.path == "/":
        query = "?" + request.query_string.decode("utf-8", "replace") if request.query_string else ""
        said |= {
            "og:image": f"{address}{EXPORT}{CARD}{query}",
            "og:image:width": "1200",
            "og:image:height": "630",
        }
    tags = [f'<meta property="{name}" content="{escape(value)}">' for name, value in said.items()]
    return "\n".join(["", *tags, '<meta name="twitter:card" content="summary_large_image">'])


def page_data(page: Page) -> str:
    """Attributes that tell the scripts which page this is, and of a page of figures its heading."""
    report = f' data-report="{escape(page.name)}"' if page.report else ""
    embed = " data-embed" if flask.current_app.config[EMBED] else ""
    base = f' data-base="{escape(flask.request.script_root)}/"' if flask.request.script_root else ""
    return f' data-page="{escape(page.word)}"{report}{embed}{base}'


def create_app(
    jobs: Path | None = None, embed: bool | None = None, base_path: str | None = None
) -> dash.Dash:
    """A new explorer: pages registered, answers compressed, headers set.

    ``jobs`` is the folder of background jobs, by default the one that ``TOKENTRIP_JOBS`` names; without
    one there are none. ``embed`` lets other sites frame ``/embed``; by default ``TOKENTRIP_EMBED=1`` does.
    ``base_path`` is the prefix it lies below, by default that of ``TOKENTRIP_BASE_PATH``.

    Raises:
        ConfigError: when the folder cannot be used, or for a prefix that is none.
    """
    base = checked_base_path(os.environ.get(BASE_PATH, "") if base_path is None else base_path)
    scripts, styles = Bundle.of_scripts(), Bundle.of_styles()
    app = Explorer(
        __name__,
        update_title="",
        compress=True,
        serve_locally=True,
        suppress_callback_exceptions=True,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        index_string=INDEX.replace("SCRIPT", base + scripts.address),
        assets_ignore=".",
        external_stylesheets=[base + styles.address],
        requests_pathname_prefix=f"{base}/",
        routes_pathname_prefix="/",
    )
    app.server.json.sort_keys = False
    folder = jobs or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    app.server.config[VARIABLE] = folder
    content: list[html.Div | html.Section] = [html.Div(id="page", className="page")]
    if folder is not None:
        content.append(job_panel())
        register_jobs(app, job_manager(folder))
    app.layout = html.Div([header(base), html.Main(content, id="main")], id="explorer")
    for bundle in (scripts, styles):
        bundle.register(app.server)
    register_api(app.server)
    app.server.config[EMBED] = os.environ.get(EMBED) == "1" if embed is None else embed
    if app.server.config[EMBED]:
        register_embed(app.server)
    add_headers(app)
    if base:
        app.server.wsgi_app = below(base, app.server.wsgi_app)
    return app


def create_server() -> flask.Flask:
    """The WSGI application, for gunicorn or another server."""
    server: flask.Flask = create_app().server
    return server


def header(base: str = "") -> html.Header:
    """The brand, and one link per page; ``data-mesh`` marks pages of one mesh."""
    links = []
    for page in PAGES:
        marks: dict[str, Any] = {"data-mesh": ""} if page.one_mesh else {}
        marks |= {"hidden": True} if page.folded else {}
        links.append(
            html.A(page.name, href=base + page.path, className="nav-link", id=f"nav-{page.word}", **marks)
        )
    label: dict[str, Any] = {"aria-label": "Pages"}
    return html.Header(
        [
            html.A("tokentrip", href=f"{base}/", className="brand"),
            html.Button("Menu", id="menu", type="button"),
            html.Nav(links, **label),
            html.Button("Theme: system", id="theme", type="button"),
        ],
        className="top",
    )
