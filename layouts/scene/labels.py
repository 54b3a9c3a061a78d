"""Short labels: experts of a GPU, layers of a stage, lists of GPUs, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.display import format_bytes, number_runs
from tracer.mesh.axes import Axis

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink
    from tracer.scenario.scenario import Scenario

MAX_LABEL = 9
MANY = 6
LINKS = {"nvlink": "NVLink", "ib": "InfiniBand"}


def runs_text(numbers: Iterable[int]) -> str:
    """Numbers with runs of three or more joined.

    >>> runs_text([8, 9, 10, 11, 27])
    '8–11, 27'
    """
    parts: list[str] = []
    for first, last in number_runs(numbers):
        if last - first > 1:
            parts.append(f"{first:,}–{last:,}")
        else:
            parts += [f"{number:,}" for number in range(first, last + 1)]
    return ", ".join(parts)


def and_list(words: Sequence[str]) -> str:
    """Words as a list with "and".

    >>> and_list(["3", "19", "27"])
    '3, 19 and 27'
    """
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}"


def gpus(ranks: Sequence[int]) -> str:
    """A few GPUs by name; many by their number.

    >>> gpus([11]), gpus([8, 9]), gpus(range(100))
    ('GPU 11', 'GPUs 8 and 9', 'GPUs 0–99')
    """
    return _numbered(ranks, "GPU")


def tokens(indices: Sequence[int]) -> str:
    """A few tokens by number; many by how many they are.

    >>> tokens([0]), tokens([0, 1, 2, 7]), tokens(range(0, 100, 2))
    ('token 0', 'tokens 0–2 and 7', '50 tokens')
    """
    return _numbered(indices, "token")


def _numbered(numbers: Sequence[int], word: str) -> str:
    if sum(after != before + 1 for before, after in pairwise(numbers)) >= MANY:
        return f"{len(numbers):,} {word}s"
    text = runs_text(numbers).split(", ")
    if len(numbers) == 1:
        return f"{word} {text[0]}"
    return f"{word}s {and_list(text)}" if len(text) <= MANY else f"{len(numbers):,} {word}s"


def link_text(link: BusyLink) -> str:
    """A link, what it carries, and whose that is."""
    ends = f"{link.source:,} → {link.destination:,} over {LINKS[link.tier]}"
    return f"{ends}, {format_bytes(link.payload_bytes)} of {tokens(link.tokens)}"


def meeting_text(gpu: int, met: Sequence[int]) -> str:
    """Which tokens meet on a GPU."""
    return f"GPU {gpu:,}: {tokens(met)}"


def plural(count: int, word: str, many: str | None = None) -> str:
    """A count and its word.

    >>> plural(1, "copy", "copies"), plural(2, "copy", "copies")
    ('1 copy', '2 copies')
    """
    return f"{count:,} {word if count == 1 else many or word + 's'}"


def every(count: int) -> str:
    """All of a few.

    >>> every(2), every(4)
    ('both', 'all 4')
    """
    return "both" if count == 2 else f"all {count:,}"


def times(count: int) -> str:
    """How often something happens.

    >>> times(2), times(4)
    ('twice', '4 times')
    """
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def time_text(seconds: float) -> str:
    """A time with the unit that keeps it readable.

    >>> time_text(1.6384e-7), time_text(2.5e-4), time_text(0.0)
    ('0.16 µs', '250 µs', '0 µs')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    micro = seconds * 1e6
    return f"{micro:.3g} µs" if micro >= 1 else f"{micro:.2g} µs"


def expert_label(scenario: Scenario, rank: int) -> str:
    """Experts in a GPU's slots (of the first MoE layer of its stage), at most ``MAX_LABEL`` letters."""
    layer = first_moe_layer(scenario, scenario.mesh.stage_of(rank))
    if layer is None:
        return ""
    held = scenario.placement_of(layer).experts_of(scenario.mesh.expert_coordinate(rank, Axis.EP))
    pair = " ".join(f"E{expert}" for expert in held)
    if len(held) <= 2 and len(pair) <= MAX_LABEL:
        return pair
    run = f"E{held[0]}–{held[-1]}"
    if len(run) <= MAX_LABEL and list(held) == list(range(held[0], held[-1] + 1)):
        return run
    return f"E{held[0]}, …"


def stage_layers_text(scenario: Scenario, stage: int) -> str:
    """Layers of a stage, a run for each of its chunks.

    ``layers 1–4``, ``layer 3``, or ``layers 1–5, 21–25``; nothing where it has none.
    """
    runs = scenario.stage_runs[stage]
    if not runs:
        return "no layers"
    spans = [f"{run.start}–{run.stop - 1}" if len(run) > 1 else f"{run.start}" for run in runs]
    shown = spans if len(spans) <= MANY else [*spans[: MANY - 1], f"… ({len(spans)} chunks)"]
    return ("layer " if scenario.stage_layers[stage] == 1 else "layers ") + ", ".join(shown)


def first_moe_layer(scenario: Scenario, stage: int) -> int | None:
    """The first layer with experts of a stage, whose placement stands for the others on a map."""
    model = scenario.model
    if model.experts is None:
        return None
    return next((layer for layer in scenario.layers_of(stage) if model.is_moe(layer)), None)
