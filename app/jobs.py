"""Counts too long to wait for, through Dash's own background callbacks.

A job runs in a process of its own; what it says of its progress, and its answer until it is fetched, lie
in a folder that all workers of one host share. Nothing else is kept, and nothing outlives the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, DiskcacheManager, Input, Output, dcc, html

from app.api import error_payload
from tracer.errors import ConfigError

if TYPE_CHECKING:
    import dash

VARIABLE = "TOKENTRIP_JOBS"
INTERVAL_MS = 400
FOLDER_BYTES = 1 << 26

SetProgress = Callable[[tuple[str, str, str]], None]


def job_manager(folder: Path) -> DiskcacheManager:
    """A manager over a folder, which is made if need be and holds ``FOLDER_BYTES`` at most.

    Raises:
        ConfigError: when the folder cannot be made or written.
    """
    import diskcache

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache = diskcache.Cache(str(folder), size_limit=FOLDER_BYTES)
    except (OSError, diskcache.Timeout) as error:
        rule = f"cannot be used for jobs: {error}"
        raise ConfigError(VARIABLE, str(folder), rule, "name a folder that can be written") from error
    return DiskcacheManager(cache)  # type: ignore[no-untyped-call]


def job_panel() -> html.Section:
    """Progress and a button that cancels, shown while a job runs; stores carry question and answer."""
    label: dict[str, Any] = {"aria-label": "Background job"}
    name: dict[str, Any] = {"aria-label": "Progress"}
    return html.Section(
        [
            html.P("starting …", id="job-said", role="status"),
            html.Progress(id="job-done", value="0", max="1", **name),
            html.Button("Cancel", id="job-cancel", type="button"),
            dcc.Store(id="job-query"),
            dcc.Store(id="job-answer"),
            dcc.Store(id="job-shown"),
        ],
        id="job",
        className="job",
        hidden=True,
        **label,
    )


def register_jobs(app: dash.Dash, manager: DiskcacheManager) -> None:
    """The callback that counts a batch, and the script that shows its answer."""
    app.callback(
        Output("job-answer", "data"),
        Input("job-query", "data"),
        background=True,
        manager=manager,
        interval=INTERVAL_MS,
        running=[(Output("job", "hidden"), False, True)],
        progress=[Output("job-done", "value"), Output("job-done", "max"), Output("job-said", "children")],
        progress_default=["0", "1", "starting …"],
        cancel=[Input("job-cancel", "n_clicks")],
        prevent_initial_call=True,
    )(count_batch)
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("tokentrip", "jobAnswered"),
        Output("job-shown", "data"),
        Input("job-answer", "data"),
        prevent_initial_call=True,
    )


def count_batch(set_progress: SetProgress, asked: dict[str, Any]) -> dict[str, Any]:
    """The batch page of ``asked["query"]``; an error of the reader's is an answer, as elsewhere."""
    from app.reports.batch import batch_report

    def tell(done: int, blocks: int) -> None:
        set_progress((str(done), str(blocks), f"{done:,} of {blocks:,} blocks counted"))

    try:
        report = batch_report(asked["query"], progress=tell)
    except ConfigError as error:
        report = error_payload(error)
    return {"turn": asked["turn"], "report": report}
