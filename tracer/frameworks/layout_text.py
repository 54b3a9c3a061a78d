"""A layout as text that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.axes import DENSE_AXES, EXPERT_AXES

if TYPE_CHECKING:
    from tracer.frameworks.layout import Layout
    from tracer.frameworks.walks import Walk

MAX_MEMBERS = 8


def layout_text(layout: Layout) -> str:
    """Sizes, the first group under every name, where experts sit, and the warnings."""
    reading = layout.reading
    mesh = layout.scenario.mesh
    lines = [
        f"{layout.framework}: {layout.world_size} GPUs",
        f"  dense   {_sizes(mesh.dense.names, mesh.dense.sizes)}  (fastest first)",
        f"  experts {_sizes(mesh.expert.names, mesh.expert.sizes)}  (over each stage's ranks)",
        "",
        f"  {'group':<14}{'groups':>8}{'size':>8}  rank 0's group",
    ]
    for axis in (*DENSE_AXES, *EXPERT_AXES):
        lines.append(_row(axis, reading.walk(axis)))
    lines += ["", f"  {layout.framework}'s own names"]
    lines += [_row(name, walk) for name, walk in reading.groups.items()]
    placement = reading.placement
    if placement is not None:
        shown = ", ".join(map(str, placement.experts_of(0)[:MAX_MEMBERS]))
        more = "" if placement.slots_on(0) <= MAX_MEMBERS else ", ..."
        lines += [
            "",
            f"  {placement.experts} experts over {placement.ep} EP ranks: EP rank 0 holds {shown}{more}",
        ]
    for note in layout.warnings:
        lines += ["", f"! {note.code}: {note.message}", f"  {note.fix}"]
    return "\n".join(lines)


def _sizes(names: tuple[str, ...], sizes: tuple[int, ...]) -> str:
    return " ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))


def _row(name: str, walk: Walk) -> str:
    first = walk.first(MAX_MEMBERS)
    if walk.ends:
        whole = walk.grid.group(0, walk.axes)
        first = sorted({whole[end] for end in walk.ends})
    size = len(first) if walk.ends else walk.size
    dots = ", ..." if size > MAX_MEMBERS else ""
    return f"  {name:<14}{walk.grid.size // walk.size:>8}{size:>8}  {', '.join(map(str, first))}{dots}"
