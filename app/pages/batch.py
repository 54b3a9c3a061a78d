"""The batch: every pick counted, over GPUs and experts, before and after balancing."""

from __future__ import annotations

import flask
from dash import html

from app.jobs import VARIABLE, job_panel
from app.pages.frame import frame

NAME, PATH, TITLE = "Batch", "/batch", "Batch · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, and the panel of a background job where one can run."""
    jobs = flask.current_app.config[VARIABLE]
    return html.Div([frame("batch"), *([job_panel()] if jobs else [])], className="page with-job")
