"""From pasted flags to a layout: the lines, the framework's reading, the scenario, the warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, check_int
from tracer.frameworks.layout import Layout
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.parsing import FlagTable, Parsed, parse, unknown_note
from tracer.frameworks.refusals import refused
from tracer.frameworks.registry import framework
from tracer.frameworks.settings import Request, Settings
from tracer.frameworks.shell_lines import LaunchLine, read_lines
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.scenario.deployment import merges_over_tp
from tracer.scenario.plan import SharedTp
from tracer.scenario.scenario import BareScenario

if TYPE_CHECKING:
    from tracer.frameworks.settings import Framework, Reading
    from tracer.mesh.grid import IntArray
    from tracer.model.spec import ModelSpec

MAX_COMPARED_RANKS = 1 << 12
DEFAULT_GPUS_PER_NODE = 8


def from_flags(
    name: str,
    argv: Sequence[str] | str,
    *,
    gpus: int | None = None,
    gpus_per_node: int | None = None,
    version: str | None = None,
    model: ModelSpec | None = None,
    strict: bool = False,
    file: Mapping[str, object] | None = None,
) -> Layout:
    """The layout that a framework makes of launch flags.

    ``argv`` holds flags, or a whole shell line with its launcher and environment. ``gpus`` is every GPU
    there is; None takes what the line says, or what the flags multiply to. ``gpus_per_node`` is the
    launcher's count, else 8. ``file`` holds the tables of the framework's own configuration file, which
    flags override (TensorRT-LLM's overrides its flags). ``strict`` refuses flags that are not in the
    framework's table.

    >>> layout = from_flags("vllm", "-tp 2 -pp 2 -dp 2 --enable-expert-parallel", gpus=8)
    >>> layout.framework_groups["ep"]
    [[0, 1, 4, 5], [2, 3, 6, 7]]

    Raises:
        ConfigError: for what the framework refuses, with its rule and a flag that works; for a value of
            the wrong kind; and with ``strict`` for an unknown flag.
    """
    known = framework(name)
    line = read_lines(argv)
    if line.framework is not None and line.framework != known.name and line.framework != "deepspeed":
        raise ConfigError(
            "framework", known.name, f"does not fit the line, which starts {line.framework}", "name that one"
        )
    table = FlagTable(known.flags, known.dialect)
    parsed = _parsed(line, table, file, strict, known)
    request = Request(
        Settings(table.by_dest(), parsed.values),
        _gpus(gpus, line),
        _per_node(gpus_per_node, line, parsed) or DEFAULT_GPUS_PER_NODE,
        version,
        model,
        line.env,
    )
    if _per_node(gpus_per_node, line, parsed) is None:
        request = _over_nodes(request, known)
    remark = unknown_note(parsed.unknown, table)
    return _laid_out(known, request, parsed.notes, [remark] if remark else [], tuple(parsed.unknown))


def from_line(
    text: str, *, gpus: int | None = None, gpus_per_node: int | None = None, model: ModelSpec | None = None
) -> Layout:
    """The layout of a line that names its framework: ``vllm serve -tp 8``, ``megatron --context-...``.

    Raises:
        ConfigError: when no framework is named, or as :func:`from_flags`.
    """
    found = read_lines(text).framework
    if found is None:
        raise ConfigError(
            "line",
            text,
            "does not say which framework it starts",
            "begin it with the framework's name, such as 'vllm -tp 8'",
        )
    return from_flags(found, text, gpus=gpus, gpus_per_node=gpus_per_node, model=model)


def _laid_out(
    known: Framework, request: Request, before: list[Note], after: list[Note], unknown: tuple[str, ...]
) -> Layout:
    """The layout of a request, with remarks about its flags before and after the framework's own."""
    reading = _read(known, request)
    scenario = _scenario(reading, request, known)
    notes = (*before, *reading.notes, *_differences(reading, scenario), *after)
    return Layout(known.name, reading, scenario, notes, unknown)


def _parsed(
    line: LaunchLine, table: FlagTable, file: Mapping[str, object] | None, strict: bool, known: Framework
) -> Parsed:
    """Settings of the file and the flags together."""
    parsed = parse(line.words, table)
    if file is not None:
        _merge_file(parsed, file, table, known)
    elif "config_file" in parsed.values:
        name = table.by_dest()["config_file"].name
        parsed.notes.append(
            Note(
                "config_file_not_read",
                f"{name} names a file, which may set sizes too; it was not opened",
                "give it as --file, beside the flags",
            )
        )
    if strict and parsed.unknown:
        unknown = parsed.unknown[0]
        near = table.nearest(unknown)
        fix = f"did you mean {near}?" if near else "drop it, or drop --strict"
        raise ConfigError(unknown, None, f"is not a flag of {known.title} that is known here", fix)
    return parsed


def _merge_file(parsed: Parsed, file: Mapping[str, object], table: FlagTable, known: Framework) -> None:
    """Add a configuration file's settings; flags override them unless the framework says otherwise."""
    from tracer.frameworks.config_files import settings_from

    found = settings_from(file, table)
    if known.file_wins:
        for dest in found.values.keys() & parsed.values.keys():
            if found.values[dest] != parsed.values[dest]:
                name = table.by_dest()[dest].name
                parsed.notes.append(_overridden(name, found.values[dest], known.title))
    parsed.values = parsed.values | found.values if known.file_wins else found.values | parsed.values
    parsed.unknown.extend(found.unknown)


def _overridden(name: str, value: object, title: str) -> Note:
    return Note(
        "file_overrides_flag",
        f"the file sets {name} to {value}, and in {title} the file wins over the flag",
        f"change the file, or drop {name}",
    )


def _gpus(gpus: int | None, line: LaunchLine) -> int | None:
    """GPUs of the caller or of the launch line, which must agree."""
    said = line.counts.gpus
    if said is None and line.env.get("NGPU", "").isdecimal():
        said = int(line.env["NGPU"][:10])
    if gpus is None:
        return said if said is None else check_int("gpus", said)
    check_int("gpus", gpus)
    if said is not None and said != gpus:
        raise ConfigError(
            "gpus",
            gpus,
            f"does not fit the launch line, whose {line.launcher or 'environment'} starts {said} processes",
            f"try --gpus {said}",
        )
    return gpus


def _per_node(gpus_per_node: int | None, line: LaunchLine, parsed: Parsed) -> int | None:
    """GPUs of a node, of the caller, the launcher, or the framework's own flag; None where nothing says."""
    if gpus_per_node is not None:
        return check_int("gpus_per_node", gpus_per_node)
    own = parsed.values.get("gpus_per_node")
    return line.counts.per_node or (own if isinstance(own, int) else None)


def _over_nodes(request: Request, known: Framework) -> Request:
    """The request with nodes as large as the framework's own ``--nnodes`` makes them."""
    nodes = request.settings.maybe("nnodes") if "nnodes" in request.settings.flags else None
    if nodes is None or nodes == 1:
        return request
    gpus = request.gpus or _read(known, request).world_size
    return replace(request, gpus_per_node=max(1, -(-gpus // nodes)))


def _read(known: Framework, request: Request) -> Reading:
    try:
        return known.read(request)
    except Refusal as refusal:
        raise refused(refusal, request, known, known.read) from refusal


def _scenario(reading: Reading, request: Request, known: Framework) -> BareScenario:
    """The same mesh as a scenario of this engine."""
    mesh = reading.mesh_table()
    tables: dict[str, object] = {
        "name": f"{known.title} launch",
        "source": f"launch flags of {known.title}" + (f" {request.version}" if request.version else ""),
        "cluster": {"gpus_per_node": request.gpus_per_node},
        "mesh": mesh,
    }
    if request.model is not None:
        tables["model"] = request.model.to_dict()
    if request.model is not None and request.model.experts is not None and reading.placement is not None:
        placement = reading.placement
        tables["placement"] = {"kind": placement.kind, "remainder": placement.remainder} | (
            {} if placement.slots is None else {"slots": list(placement.slots)}
        )
    if mesh.get("shared_tp") != "merged":
        return BareScenario.from_dict(tables)
    # Where our groups have no reduction over TP to join, the same slices are summed by a hop of their own.
    own = BareScenario.from_dict(tables | {"mesh": mesh | {"shared_tp": "own"}})
    merges = merges_over_tp(own.plan.contract, own.mesh)
    return own.with_(plan=replace(own.plan, shared_tp=SharedTp.MERGED)) if merges else own


def _differences(reading: Reading, scenario: BareScenario) -> list[Note]:
    """A warning where the scenario's groups are not the framework's, axis by axis."""
    if reading.world_size > MAX_COMPARED_RANKS:
        return []
    differ = [
        axis
        for axis in (*DENSE_AXES, *EXPERT_AXES)
        if _as_sets(reading.walk(axis).array()) != _as_sets(scenario.mesh.groups(axis))
    ]
    if not differ:
        return []
    return [
        Note(
            "not_expressible",
            f"the scenario's {', '.join(differ)} groups differ from the framework's: one order of axes "
            "cannot say where these ranks sit",
            "trust the groups listed here; the trip follows the scenario",
        )
    ]


def _as_sets(rows: IntArray) -> set[tuple[int, ...]]:
    """Groups as a set of ascending tuples."""
    return {tuple(sorted(row)) for row in rows.tolist()}
