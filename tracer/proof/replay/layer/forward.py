"""One prefill, or one decode step, on the mesh, in the order a token travels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING

from tracer.proof.replay.layer.attention import attention_block
from tracer.proof.replay.layer.decode_attention import decode_attention_block
from tracer.proof.replay.layer.ends import land_and_embed, lm_head, pass_on
from tracer.proof.replay.layer.experts import dense_block
from tracer.proof.replay.layer.moe import moe_block
from tracer.proof.replay.layer.rows import MissingRowError
from tracer.proof.replay.layer.sharded_weights import gather_unit, note_gathers
from tracer.trip.hop import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracer.proof.replay.run import Run


def prefill_on_mesh(run: Run) -> None:
    """Land, run every layer, pass rows from stage to stage, and read the logits.

    Raises:
        MissingRowError: when a GPU needs a row that the plan never sent it.
    """
    _on_mesh(run, attention_block)


def decode_on_mesh(run: Run) -> None:
    """The same for a step's new tokens, whose queries meet the K/V that is kept.

    Raises:
        MissingRowError: as :func:`prefill_on_mesh`.
    """
    _on_mesh(run, decode_attention_block)


def _on_mesh(run: Run, attend: Callable[[Run, int], None]) -> None:
    scenario = run.scenario
    with _at("embedding"):
        land_and_embed(run)
    ends = [chunk.stage for chunk in scenario.chunks[1:]]
    for chunk, onward in zip_longest(scenario.chunks, ends):
        for layer in chunk.layers:
            with _at(f"layer {layer} attention"):
                gathers = gather_unit(run, layer, Part.ATTENTION)
                attend(run, layer)
            moe = scenario.model.is_moe(layer)
            with _at(f"layer {layer} {'MoE block' if moe else 'feed-forward block'}"):
                (moe_block if moe else dense_block)(run, layer)
                note_gathers(run, layer, Part.ATTENTION, gathers)
        if onward not in (None, chunk.stage):
            with _at(f"pipeline send after layer {chunk.layers.stop - 1}"):
                pass_on(run, chunk.layers.stop - 1, chunk.stage)
    with _at("LM head"):
        lm_head(run)


@contextmanager
def _at(what: str) -> Iterator[None]:
    """Say in which block a row was missing."""
    try:
        yield
    except MissingRowError as error:
        raise MissingRowError(f"{what}: {error}") from None
