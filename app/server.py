"""The explorer: a Dash app made by a factory, stateless, ready for several workers.

``gunicorn 'app.server:create_server()'`` serves it; ``TOKENTRIP_JOBS`` names a folder that its workers
share, and long counts then run in the background.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dash
from dash import html

from app.api import register_api
from app.export_api import register_exports
from app.jobs import VARIABLE, job_manager, register_jobs
from app.pages import register_pages
from app.security import add_headers

if TYPE_CHECKING:
    import flask

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="data:,">
{%css%}
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


def create_app(jobs: Path | None = None) -> dash.Dash:
    """A new explorer: pages registered, answers compressed, headers set.

    ``jobs`` is the folder of background jobs, by default the one that ``TOKENTRIP_JOBS`` names; without
    one there are none.

    Raises:
        ConfigError: when the folder cannot be used.
    """
    app = dash.Dash(
        __name__,
        use_pages=True,
        pages_folder="",
        title="tokentrip",
        update_title="",
        compress=True,
        serve_locally=True,
        suppress_callback_exceptions=True,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        index_string=INDEX,
    )
    pages = register_pages()
    app.layout = html.Div([header(pages), html.Main(dash.page_container, id="main")], id="explorer")
    app.server.json.sort_keys = False
    folder = jobs or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    app.server.config[VARIABLE] = folder
    if folder is not None:
        register_jobs(app, job_manager(folder))
    register_api(app.server)
    register_exports(app.server)
    add_headers(app)
    return app


def create_server() -> flask.Flask:
    """The WSGI application, for gunicorn or another server."""
    server: flask.Flask = create_app().server
    return server


def header(pages: list[tuple[str, str]]) -> html.Header:
    """The brand, and a link a page."""
    links = [html.A(name, href=path, className="nav-link", id=f"nav-{name.lower()}") for name, path in pages]
    label: dict[str, Any] = {"aria-label": "Pages"}
    return html.Header(
        [
            html.A("tokentrip", href="/", className="brand"),
            html.Nav(links, **label),
            html.Button("Theme: system", id="theme", type="button"),
        ],
        className="top",
    )
