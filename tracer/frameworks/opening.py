"""From what was pasted to layouts: the framework's reading, the scenario, the warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracer.errors import MAX_SIZE, ConfigError, whole_number
from tracer.frameworks.gathering import check_strict, gathered
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.launch.result import Launch, Process
from tracer.frameworks.launch.sameness import difference, other_model
from tracer.frameworks.layout import Layout
from tracer.frameworks.line_model import found_model
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.parsing import FlagTable, Parsed, unknown_note
from tracer.frameworks.refusals import refused
from tracer.frameworks.registry import framework
from tracer.frameworks.settings import Request, Settings
from tracer.frameworks.unread import Unread, unread_error
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.mesh.hardware import hardware_preset
from tracer.scenario.deployment import merges_over_tp
from tracer.scenario.plan import SharedTp
from tracer.scenario.scenario import BareScenario

if TYPE_CHECKING:
    from tracer.frameworks.found_model import FoundModel
    from tracer.frameworks.settings import Framework, Reading
    from tracer.mesh.mesh import Mesh
    from tracer.model.spec import ModelSpec

MAX_COMPARED_RANKS = 1 << 12
DEFAULT_GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class LaunchedMesh:
    """One mesh of a launch: how many of its commands make it, its part in the launch, and its layout."""

    role: str
    commands: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says besides the text; ``file`` are tables of the framework's own file."""

    gpus: int | None = None
    gpus_per_node: int | None = None
    version: str | None = None
    model: ModelSpec | None = None
    strict: bool = False
    file: Mapping[str, object] | None = None
    hardware: str | None = None
    cluster: Mapping[str, object] = field(default_factory=dict)


def meshes_of(launch: Launch, asked: Asked) -> list[LaunchedMesh]:
    """Every mesh of a launch: one for each pool or role; commands of one mesh's nodes count once.

    Raises:
        ConfigError: for what the framework refuses, with its rule and a flag that works; for a value of
            the wrong kind; where what shapes the mesh is not in the text; and with ``strict`` for a flag
            that is unknown or not modelled.
    """
    distinct: list[list[Process]] = []
    for process in launch.processes:
        same = next(
            (
                group
                for group in distinct
                if group[0].role == process.role
                and not difference(group[0], process)
                and not other_model(group[0], process)
            ),
            None,
        )
        if same is None:
            distinct.append([process])
        else:
            same.append(process)
    if launch.page and not asked.strict:
        return _of_page(distinct, list(launch.refused), asked)
    if launch.refused:
        raise launch.refused[0]
    return [LaunchedMesh(group[0].role, len(group), _layout_of(group[0], asked)) for group in distinct]


def _of_page(groups: list[list[Process]], refused: list[ConfigError], asked: Asked) -> list[LaunchedMesh]:
    """The meshes of a page's launches, which are alternatives; those that are refused are said."""
    found: list[LaunchedMesh] = []
    for group in groups:
        try:
            found.append(LaunchedMesh(group[0].role, len(group), _layout_of(group[0], asked)))
        except ConfigError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    if not refused:
        return found
    message = f"{len(refused)} of this page's launches are refused; the first: {refused[0]}"
    note = Note("launch_refused", message[:400], "give that one alone")
    first = replace(found[0].layout, warnings=(*found[0].layout.warnings, note))
    return [replace(found[0], layout=first), *found[1:]]


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
    settings: Mapping[str, str] | None = None,
    hardware: str | None = None,
    cluster: Mapping[str, object] | None = None,
) -> Layout:
    """The layout that a framework makes of launch flags.

    ``argv`` holds flags, or a whole shell line with its launcher and environment. ``gpus`` is every GPU
    there is; None takes what the line says, or what the flags multiply to. ``gpus_per_node`` is the
    launcher's count, else 8. ``file`` holds the tables of the framework's own configuration file, which
    flags override (TensorRT-LLM's overrides its flags). ``strict`` refuses flags that are not in the
    framework's table. ``settings`` give variables that the line takes and does not set. Where a launch
    has several meshes this is the first, with a warning; :func:`meshes_of` gives all. ``hardware`` names GPUs
    that ship: how many a node has, and how far NVLink reaches (72 GPUs on NVL72); ``cluster`` states figures
    of theirs, as a scenario's cluster does.

    >>> layout = from_flags("vllm", "-tp 2 -pp 2 -dp 2 --enable-expert-parallel", gpus=8)
    >>> layout.framework_groups["ep"]
    [[0, 1, 4, 5], [2, 3, 6, 7]]

    Raises:
        ConfigError: as :func:`meshes_of`.
    """
    launch = read_launch(argv, framework=name, settings=settings)
    asked = Asked(gpus, gpus_per_node, version, model, strict, file, hardware, cluster or {})
    return _first(meshes_of(launch, asked))


def from_line(
    text: str,
    *,
    gpus: int | None = None,
    gpus_per_node: int | None = None,
    model: ModelSpec | None = None,
    settings: Mapping[str, str] | None = None,
) -> Layout:
    """The layout of a text that names its framework: ``vllm serve -tp 8``, a script, a manifest.

    Raises:
        ConfigError: when no framework is named, or as :func:`meshes_of`.
    """
    launch = read_launch(text, settings=settings)
    return _first(meshes_of(launch, Asked(gpus, gpus_per_node, None, model)))


def _first(meshes: list[LaunchedMesh]) -> Layout:
    first, *others = meshes
    if not others:
        return first.layout
    names = ", ".join(
        f"{mesh.role or mesh.layout.framework} ({mesh.layout.world_size} GPUs)" for mesh in others
    )
    note = Note(
        "more_meshes",
        f"this launch has {len(meshes)} meshes; this is {first.role or 'the first'}, and not here: {names}",
        "tokentrip from FILE shows all of them",
    )
    return replace(first.layout, warnings=(*first.layout.warnings, note))


def _layout_of(process: Process, asked: Asked) -> Layout:
    """The layout of one process."""
    known = framework(process.framework)
    table = FlagTable(known.flags, known.dialect, known.others.names)
    parsed = gathered(process, table, known, asked.file, asked.strict)
    settings = Settings(table.by_dest(), parsed.values)
    model = found_model(process, parsed, settings, known, asked.model)
    if asked.strict:
        check_strict(model.notes)
    gpus = _gpus(asked.gpus, process)
    per_node = _per_node(asked.gpus_per_node, process, parsed)
    _check_asks(process, gpus)
    request = Request(
        settings,
        gpus,
        per_node or _usual(asked.hardware),
        asked.version,
        model.spec,
        process.env,
        asked.hardware,
        asked.cluster,
    )
    if per_node is None:
        request = _over_nodes(request, known)
    remark = unknown_note(parsed.unknown, table)
    notes = [*process.notes, *model.notes, *parsed.notes]
    after = [remark] if remark else []
    layout = _laid_out(known, request, model, notes, after, tuple(parsed.unknown))
    return _against_pods(layout, process)


def _laid_out(
    known: Framework,
    request: Request,
    model: FoundModel,
    before: list[Note],
    after: list[Note],
    unknown: tuple[str, ...],
) -> Layout:
    """The layout of a request, with remarks about its flags before and after the framework's own."""
    reading = _read(known, request)
    scenario = _scenario(reading, request, known, model.dtype)
    notes = (*before, *reading.notes, *_differences(reading, scenario), *after)
    return Layout(known.name, reading, scenario, notes, unknown, model.preset or model.named)


def _against_pods(layout: Layout, process: Process) -> Layout:
    """A warning where a manifest grants another number of GPUs than the launch takes."""
    if process.pods is None:
        return layout
    world, (granted, copies) = layout.world_size, process.pods
    if granted == world or world == granted * copies:
        return layout
    if granted < world:
        note = Note(
            "more_than_granted",
            f"the launch takes {world} GPUs and this manifest's pods have {granted * copies}: the others are "
            "started elsewhere (another manifest, or more replicas)",
            "give the manifest of all nodes, or lower the sizes",
        )
    else:
        note = Note(
            "granted_gpus_idle",
            f"this manifest's pods have {granted} GPUs and the launch takes {world}",
            "raise a size, or lower the limit",
        )
    return replace(layout, warnings=(*layout.warnings, note))


def _gpus(gpus: int | None, process: Process) -> int | None:
    """GPUs of the caller or of the launch line, which must agree."""
    said = process.counts.gpus
    if gpus is None:
        return said if said is None else whole_number("gpus", said, at_most=MAX_SIZE)
    whole_number("gpus", gpus, at_most=MAX_SIZE)
    if said is not None and said != gpus:
        raise ConfigError(
            "gpus",
            gpus,
            f"does not fit the launch line, whose {process.launcher or 'environment'} starts {said} "
            "processes",
            f"try --gpus {said}",
        )
    return gpus


def _check_asks(process: Process, gpus: int | None) -> None:
    """Ask for the count that a launcher takes from a variable, where nothing else gives the GPUs."""
    if gpus is not None or not process.counts.asks:
        return
    option, word = next(iter(process.counts.asks.items()))
    name = (
        option
        if (len(option) > 1 and option.isupper()) or "." in option
        else f"{'-' if len(option) == 1 else '--'}{option}"
    )
    if not word:
        rule = "is not given here, and the configuration below this one, which sets it, is not here"
        raise ConfigError(name, None, rule, f"add --gpus N, or the key {name}")
    error = unread_error(name, Unread(word, word.missing))
    raise ConfigError(error.field, error.got, error.rule, f"{error.fix}, or add --gpus N")


def _per_node(gpus_per_node: int | None, process: Process, parsed: Parsed) -> int | None:
    """GPUs of a node, of the caller, the launcher, or the framework's own flag; None where nothing says."""
    if gpus_per_node is not None:
        return whole_number("gpus_per_node", gpus_per_node, at_most=MAX_SIZE)
    own = parsed.values.get("gpus_per_node")
    counts = process.counts
    return counts.per_node or (own if isinstance(own, int) else None) or counts.gpus_per_node


def _usual(hardware: str | None) -> int:
    """GPUs of a node of the hardware, 8 where none is named."""
    return DEFAULT_GPUS_PER_NODE if hardware is None else hardware_preset(hardware).gpus_per_node


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


def _scenario(reading: Reading, request: Request, known: Framework, dtype: Mapping[str, str]) -> BareScenario:
    """The same mesh as a scenario of this engine."""
    mesh = reading.mesh_table()
    tables: dict[str, object] = {
        "name": f"{known.title} launch",
        "source": f"launch flags of {known.title}" + (f" {request.version}" if request.version else ""),
        "cluster": {
            "gpus_per_node": request.gpus_per_node,
            "nodes_per_island": request.nodes_per_domain,
            "hardware": request.hardware,
            **request.cluster,
        },
        "mesh": mesh,
    }
    if dtype:
        tables["dtype"] = dict(dtype)
    if "seq_length" in request.settings.flags and request.settings.has("seq_length"):
        tables["token"] = {"prompt": request.settings.size("seq_length")}
    if request.model is not None:
        tables["model"] = request.model.to_dict()
    if request.model is not None and request.model.experts is not None and reading.placement is not None:
        placement = reading.placement
        by_layer = {str(layer): list(own.slots or ()) for layer, own in reading.layer_placements}
        tables["placement"] = {
            "kind": placement.kind,
            "remainder": placement.remainder,
            **({} if placement.slots is None else {"slots": list(placement.slots)}),
            **({"slots_by_layer": by_layer} if by_layer else {}),
        }
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
        if _as_sets(reading.walk(axis).walked()) != _as_sets(_groups(scenario.mesh, axis))
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


def _groups(mesh: Mesh, axis: str) -> Iterator[Iterable[int]]:
    """Every group along an axis, once."""
    seen: set[int] = set()
    for rank in range(mesh.world_size):
        if rank not in seen:
            group = mesh.group(rank, axis)
            seen.update(group)
            yield group


def _as_sets(groups: Iterable[Iterable[int]]) -> set[tuple[int, ...]]:
    """Groups as a set of ascending tuples."""
    return {tuple(sorted(group)) for group in groups}
