"""Counts too long to wait for, through Dash's own background callbacks.

A job runs in a process of its own; what it says of its progress, and its answer until it is fetched, lie
in a folder that all workers of one host share. Nothing else is kept, and nothing outlives the folder.
A job that nobody asks after any more, since its tab is closed, ends itself.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flask
from dash import ClientsideFunction, DiskcacheManager, Input, Output, html

from app.web.answers import error_payload
from tracer.errors import ConfigError

if TYPE_CHECKING:
    import dash

VARIABLE = "TOKENTRIP_JOBS"
INTERVAL_MS = 400
FOLDER_BYTES = 1 << 26
AT_ONCE, PER_CLIENT, JOB_CPU_S = max(2, os.cpu_count() or 2), 2, 3600
"""Jobs that run at a time on this host and for one client, and the processor time that one may take."""

AGAIN_S, STARTING_S = 20, 60.0
"""Seconds after which a client that found all places taken may ask again, and that a start may take."""

LONELY_S = 90.0
"""Seconds without a question after which a job's tab is taken to be closed: hidden tabs ask once a minute."""

PLACES = "places"
TEXT = "data-json"
"""A property of plain HTML, where ``dcc.Store`` would bring all of Dash's core components to every page."""

SetProgress = Callable[[tuple[str, str, str]], None]


class WatchedManager(DiskcacheManager):
    """Limits jobs, and notes when a page last asked about one: it ends itself when nobody has for long.

    A job has a key that cannot be guessed, so that what it says and answers is read by the page alone that
    started it. Its place is a record in the folder, which all workers of the host share.
    """

    def build_cache_key(self, *asked: object) -> str:
        """A key that nobody guesses, and that no other question has, be it the same one."""
        return secrets.token_urlsafe(32)

    def get_progress(self, key: str) -> object:
        """Progress, which Dash asks for several times per second for every page that waits."""
        self._note(key)
        return super().get_progress(key)  # type: ignore[no-untyped-call]

    def call_job_fn(self, key: str, job_fn: Callable[..., None], args: object, context: object) -> int:
        """Start a job, with a watch beside it; without a free place the answer is a 503."""
        client = _client()

        def watched(*given: object) -> None:
            """The job in its process."""
            _limit_cpu(JOB_CPU_S)
            threading.Thread(target=self._watch, args=(key,), daemon=True).start()
            job_fn(*given)

        self._take_place(key, client)
        self._note(key)
        process: int = super().call_job_fn(key, watched, args, context)  # type: ignore[no-untyped-call]
        # Not within one transaction: a process that is forked there would share it.
        with self.handle.transact():
            self.handle.set(PLACES, self._places() | {key: (process, client, time.time())})
        return process

    def _take_place(self, key: str, client: str) -> None:
        """Have a place, or abort with a 503; counted and taken before another worker counts."""
        with self.handle.transact():
            places = {job: place for job, place in self._places().items() if self._alive(*place)}
            taken = [owner for _, owner, _ in places.values()]
            if free := len(taken) < AT_ONCE and taken.count(client) < PER_CLIENT:
                self.handle.set(PLACES, places | {key: (0, client, time.time())})
        if not free:
            flask.abort(_busy(len(taken)))

    def _alive(self, process: int, client: str, since: float) -> bool:
        """Whether a place is still taken: its process runs, or is about to start."""
        if process == 0:
            return time.time() - since < STARTING_S
        return bool(self.job_running(process))  # type: ignore[no-untyped-call]

    def _places(self) -> dict[str, tuple[int, str, float]]:
        """Process, client and time of each job that was started."""
        found: dict[str, tuple[int, str, float]] = self.handle.get(PLACES) or {}
        return found

    def _note(self, key: str) -> None:
        self.handle.set(f"{key}-asked", time.time(), expire=2 * LONELY_S)

    def _watch(self, key: str) -> None:
        """In the job's process: end it at once when nobody has asked for long."""
        while time.time() - (self.handle.get(f"{key}-asked") or 0.0) < LONELY_S:
            time.sleep(LONELY_S / 60)
        os._exit(0)


def _client() -> str:
    """Who asks, by address; behind a proxy all are one unless the server trusts the proxy's header."""
    return flask.request.remote_addr or "" if flask.has_request_context() else ""


def _busy(running: int) -> flask.Response:
    """What is said where no place is free."""
    parts = {
        "field": "job",
        "rule": f"has to wait: {running} run here, of {AT_ONCE} at a time and {PER_CLIENT} for one reader",
        "fix": f"ask again in {AGAIN_S} s, or end one of yours",
    }
    text = f"job {parts['rule']}; {parts['fix']}"
    response = flask.jsonify({"error": {**parts, "text": text}})
    response.status_code = 503
    response.headers["Retry-After"] = str(AGAIN_S)
    return response


def _limit_cpu(seconds: int) -> None:
    """End this process once it has taken so much processor time, where the system can."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


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
    return WatchedManager(cache)  # type: ignore[no-untyped-call]


def job_panel() -> html.Section:
    """Progress and a cancel button, shown while a job runs; attributes hold the question and the answer."""
    label: dict[str, Any] = {"aria-label": "Background job"}
    name: dict[str, Any] = {"aria-label": "Progress"}
    return html.Section(
        [
            html.P("starting …", id="job-said", role="status"),
            html.Progress(id="job-done", value="0", max="1", **name),
            html.Button("Cancel", id="job-cancel", type="button"),
            *(html.Div(id=name, hidden=True) for name in ("job-query", "job-answer", "job-shown")),
        ],
        id="job",
        className="job",
        hidden=True,
        **label,
    )


def register_jobs(app: dash.Dash, manager: DiskcacheManager) -> None:
    """The callback that counts a batch, and the script that shows its answer."""
    app.callback(
        Output("job-answer", TEXT),
        Input("job-query", TEXT),
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
        Output("job-shown", TEXT),
        Input("job-answer", TEXT),
        prevent_initial_call=True,
    )


def count_batch(set_progress: SetProgress, text: str) -> str:
    """The batch page of a query, both as JSON; wrong input gives an error as its answer, as elsewhere."""
    from app.reports.batch.batch import batch_report

    asked = json.loads(text)

    def tell(done: int, blocks: int) -> None:
        """Progress, in blocks."""
        set_progress((str(done), str(blocks), f"{done:,} of {blocks:,} blocks counted"))

    try:
        report = batch_report(asked["query"], progress=tell)
    except ConfigError as error:
        report = error_payload(error)
    return json.dumps({"turn": asked["turn"], "report": report})
