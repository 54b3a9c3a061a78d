"""One prompt through a pipeline in chunks: later chunks attend to more, so they take longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, whole_number
from tracer.timing.basis import Rates
from tracer.timing.batch import TimedBatch
from tracer.timing.pass_time import pass_time
from tracer.timing.schedules.pipeline import Pipeline, run_pipeline
from tracer.timing.schedules.virtual_stages import run_chunks

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.scenario.scenario import Scenario
    from tracer.trip.clock import LinkRates


MAX_CHUNKS = 1024


def chunked_prompt(
    scenario: Scenario,
    hardware: Hardware,
    chunk: int,
    links: LinkRates | None = None,
    rates: Rates | str = Rates.CALIBRATED,
) -> Pipeline:
    """The scenario's prompt in chunks of ``chunk`` tokens (the last one shorter) over its stages.

    Each chunk computes its own tokens and attends to all before it; every replica has as much.

    Raises:
        ConfigError: for a chunk below 1, more than ``MAX_CHUNKS`` chunks, or a rate that no source states.
    """
    prompt = scenario.token.prompt
    count = -(-prompt // whole_number("pipeline.chunk", chunk))
    if count > MAX_CHUNKS:
        rule = f"gives {count:,} chunks, more than the {MAX_CHUNKS:,} that are timed"
        raise ConfigError("pipeline.chunk", chunk, rule, f"try {-(-prompt // MAX_CHUNKS)}")
    first = pass_time(scenario, hardware, batch=TimedBatch(1, min(chunk, prompt)), links=links, rates=rates)
    batches = (TimedBatch(1, min(chunk, prompt - start), start) for start in range(chunk, prompt, chunk))
    rest = [
        pass_time(scenario, hardware, batch=each, links=links, rates=rates, like=first) for each in batches
    ]
    times = [first, *rest]
    table = tuple(zip(*(each.chunk_seconds for each in times), strict=True))
    send = max(each.send_seconds for each in times)
    stage_of = tuple(piece.stage for piece in scenario.chunks)
    if len(stage_of) == scenario.mesh.stages:
        return run_pipeline(table, send)
    return run_chunks(table, stage_of, send)
