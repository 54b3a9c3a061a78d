"""Embedding and output head on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracer.holding import Copies, Holding, hold, stage_copies
from tracer.weight_matrices import Part, WeightMatrix

if TYPE_CHECKING:
    from tracer.model_share import ModelShare
    from tracer.scenario import Scenario


def held_vocabulary(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    """The embedding on stage 0; the head's slice on the last stage.

    Where the two are tied, the head of a lone stage reads the embedding, and over several stages the last
    one has a copy of its own (Megatron ties them so).
    """
    tied = scenario.need_model().tie_embeddings
    if matrix.part is Part.EMBEDDING and share.embedding is not None:
        is_whole = scenario.plan.embedding == "replicated"
        rows = len(share.embedding) if is_whole else share.vocab_slice
        yield _rows(scenario, share.embedding, matrix, "embedding", rows, _embedding_copies(scenario))
    second_copy = tied and scenario.mesh.stages > 1
    if (matrix.part is Part.LM_HEAD or second_copy) and share.lm_head is not None:
        name = "tied_head" if tied else "lm_head"
        yield _rows(scenario, share.lm_head, matrix, name, share.vocab_slice, _head_copies(scenario))


def _rows(
    scenario: Scenario, real: range, matrix: WeightMatrix, name: str, rows: int, shared: Copies
) -> Holding:
    """``rows`` rows of the matrix, of which ``real`` are the vocabulary's."""
    padding = (rows - len(real)) * matrix.columns
    return hold(scenario, matrix.part, name, (rows, matrix.columns), 1, shared, padding=padding)


def _embedding_copies(scenario: Scenario) -> Copies:
    tp, is_whole = scenario.mesh.size_of("tp"), scenario.plan.embedding == "replicated"
    reason = "whole" if is_whole else f"vocabulary over tp {tp}"
    return _with_tied(
        scenario, stage_copies(scenario, reason, tp if is_whole else 1), scenario.mesh.stages - 1
    )


def _head_copies(scenario: Scenario) -> Copies:
    reason = f"vocabulary over tp {scenario.mesh.size_of('tp')}"
    return _with_tied(scenario, stage_copies(scenario, reason, 1), 0)


def _with_tied(scenario: Scenario, here: Copies, other_stage: int) -> Copies:
    """The same with the tied matrix's copies on the other end of the pipeline."""
    mesh = scenario.mesh
    if not scenario.need_model().tie_embeddings or mesh.stages == 1:
        return here
    whole = other_stage == 0 and scenario.plan.embedding == "replicated"
    there = mesh.size_of("cp") * mesh.size_of("dp") * (mesh.size_of("tp") if whole else 1)
    return Copies(here.held_by + there, f"{here.why}; tied: {there} more on stage {other_stage}")
