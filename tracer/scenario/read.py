"""Scenarios from plain tables: every unknown key refused, every default filled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tracer.errors import ConfigError, nearest, whole_number, word_of
from tracer.mesh.cluster import Cluster, Link
from tracer.mesh.hardware import GPU_FIGURES, GpuFigures, hardware_preset
from tracer.mesh.mesh import Mesh
from tracer.model.dtype import Dtypes
from tracer.scenario.deployment import BareDeployment, check_moe_layer, placed_experts
from tracer.scenario.placement import Placement, PlacementKind, redundant_slots
from tracer.scenario.plan import Contract, Plan, default_dispatch
from tracer.scenario.token import Phase, Token

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

Table = dict[str, Any]
TABLES = ("cluster", "model", "mesh", "placement", "dtype", "token", "picks")
PLAIN = ("schema", "name", "source", "phase", "seed")
SIZES = ("tp", "cp", "dp", "pp", "ep", "etp", "edp")
MESH_KEYS = ("order", *SIZES, "expert_order", "strict")
PLAN_KEYS = (
    "sp",
    "kv_exchange",
    "dispatch",
    "contract",
    "tp_algo",
    "dense_tp",
    "shared_tp",
    "shared_routed",
    "shared_overlap",
    "routing_metadata",
    "weight_shard",
    "weight_shard_size",
    "weight_keep",
    "weight_prefetch",
    "embedding",
    "landing",
    "stage_layers",
    "decode_attention",
    "cp_inner",
    "dcp",
    "dcp_interleave",
    "chunks",
    "chunk_order",
    "chunk_layers",
    "state_exchange",
    "window_exchange",
)
CLUSTER_KEYS = (
    "nodes",
    "gpus_per_node",
    "nodes_per_island",
    "hardware",
    "nvlink_bytes_per_s",
    "nvlink_latency_s",
    "ib_bytes_per_s",
    "ib_latency_s",
    *GPU_FIGURES,
    "placement",
)
TOKEN_KEYS = (
    "replica", "position", "prompt", "gpu", "prompt_logprobs", "draft_head", "first_cp", "slot", "batch",
    "text",
)  # fmt: skip
PLACEMENT_KEYS = ("kind", "remainder", "slots", "slots_by_layer", "redundant", "redundant_at")
DTYPE_KEYS = ("activations", "kv", "dispatch", "combine", "logits", "weights", "tp_gather")


class Parts(NamedTuple):
    """What tables say: the deployment, a bare one where they have no model, and the question."""

    deployment: BareDeployment
    token: Token
    phase: Phase
    picks: tuple[tuple[int, tuple[int, ...]], ...]
    seed: int


def parse_text(text: str, suffix: str, name: str | None = None) -> object:
    """Parsed TOML or JSON; ``suffix`` is ``.toml`` or ``.json``, ``name`` the file's, where it has one.

    Raises:
        ConfigError: when the text does not parse; it says where, and shows the line.
    """
    import json
    import tomllib

    try:
        return tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unparsed(text, suffix, name or "the text", error) from error


def _unparsed(text: str, suffix: str, name: str, error: Exception) -> ConfigError:
    """Where a text stops being TOML or JSON, with its line as typed."""
    kind, other = ("TOML", "JSON") if suffix == ".toml" else ("JSON", "TOML")
    said = re.sub(r"\s*\(at .*|: line \d+ column \d+ \(char \d+\)$", "", str(error))
    place = re.search(r"line (\d+),? column (\d+)", str(error))
    lines = text.splitlines()
    row = int(place[1]) if place else len(lines)
    where = f" at line {row}, column {place[2]}" if place else ""
    typed = lines[row - 1].strip() if 0 < row <= len(lines) else ""
    if (text.lstrip()[:1] in "{[" and kind == "TOML" and not re.match(r"\s*\[[\w.\"-]+\]", text)) or (
        kind == "JSON" and re.match(r"\s*(#|\[\w+\]|\w+\s*=)", text)
    ):
        return ConfigError(
            "scenario", name, f"is not valid {kind}{where}: {said}",
            f"it looks like {other}: end the name in .{other.lower()}",
        )  # fmt: skip
    fix = f"mend the line {typed!r}" if typed else "the text ends too early: complete it"
    return ConfigError("scenario", name, f"is not valid {kind}{where}: {said}", fix)


def read_tables(data: object, *, read_config: Callable[[str], ModelSpec] | None = None) -> Parts:
    """A deployment and a question from nested tables; absent and null keys take their defaults.

    ``read_config`` turns ``model.config``, a path, into a model; without it the key is refused, so that
    tables from a stranger never open a file.

    Raises:
        ConfigError: naming the first key that is unknown, or the value that breaks a rule.
    """
    tables = _table("scenario", data, (*PLAIN, *TABLES))
    if tables.get("schema", 1) != 1:
        raise ConfigError("schema", tables["schema"], "is not a schema this version reads", "try schema = 1")
    mesh_table = _table("mesh", tables.get("mesh"), (*MESH_KEYS, *PLAN_KEYS))
    phase = word_of("phase", _text(tables, "phase") or Phase.PREFILL, Phase)
    plan = _plan(mesh_table, phase)
    mesh = _mesh(mesh_table, plan)
    model = _model(tables.get("model"), read_config)
    placement, by_layer = _placements(tables.get("placement"), mesh, model, plan)
    bare = BareDeployment(
        cluster=_cluster(tables.get("cluster"), mesh),
        mesh=mesh,
        plan=plan,
        dtype=Dtypes(**_table("dtype", tables.get("dtype"), DTYPE_KEYS)),
        name=_text(tables, "name"),
        source=_text(tables, "source"),
    )
    deployment = bare if model is None else bare.serving(model, placement, by_layer)
    token, picks = _token(tables.get("token"), mesh), _picks(tables.get("picks"))
    return Parts(deployment, token, phase, picks, tables.get("seed", 0))


def _table(field: str, value: object, known: tuple[str, ...]) -> Table:
    """A table without its nulls, every key known."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(field, value, "must be a table of keys", f"write [{field}] with keys under it")
    for key in value:
        if key not in known:
            raise ConfigError(
                f"{field}.{key}", value[key], "is not a known key", _belongs(str(key), field, known)
            )
    return {key: item for key, item in value.items() if item is not None}


def _belongs(key: str, field: str, known: tuple[str, ...]) -> str:
    """Where a key belongs that its table does not know: another table, or a name close to it."""
    homes = {
        "mesh": (*MESH_KEYS, *PLAN_KEYS),
        "model": _model_keys(),
        "cluster": CLUSTER_KEYS,
        "token": TOKEN_KEYS,
        "placement": PLACEMENT_KEYS,
        "dtype": DTYPE_KEYS,
    }
    others = [table for table, keys in homes.items() if key in keys and table != field]
    return f"it belongs in [{others[0]}]" if others and field in homes else nearest(key, list(known))


def _model_keys() -> tuple[str, ...]:
    from tracer.model.spec import spec_keys

    return tuple(spec_keys())


def _text(table: Table, key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(key, value, "must be text", f'write {key} = "..."')
    return value


def _whole_list(field: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(field, value, "must be a list of whole numbers", "write [..., ...]")
    return tuple(whole_number(f"{field}[{i}]", item, at_least=0) for i, item in enumerate(value))


def _plan(table: Table, phase: Phase) -> Plan:
    given = {key: table[key] for key in PLAN_KEYS if key in table}
    for name in ("stage_layers", "chunk_layers"):
        if name in given:
            given[name] = _whole_list(f"mesh.{name}", given[name])
    given.setdefault("dispatch", default_dispatch(phase))
    return Plan(**given)


def _mesh(table: Table, plan: Plan) -> Mesh:
    given = {key: table[key] for key in MESH_KEYS if key in table}
    if plan.contract is Contract.TP:
        given.setdefault("etp", given.get("tp", 1))
    return Mesh.build(**given)


def _model(table: object, read_config: Callable[[str], ModelSpec] | None) -> ModelSpec | None:
    from tracer.model.spec import ModelSpec

    if table is None:
        return None
    if not isinstance(table, dict) or not {"config", "preset"} & set(table):
        return ModelSpec.from_dict(table)  # type: ignore[arg-type]
    source = "config" if "config" in table else "preset"
    value = table[source]
    others = sorted(str(key) for key, item in table.items() if key != source and item is not None)
    if others:
        raise ConfigError(
            f"model.{source}", value, f"already says what {', '.join(others)} would", "give one or the other"
        )
    if source == "preset":
        from tracer.model.configs.presets import model_preset

        return model_preset(value)
    if read_config is None or not isinstance(value, str):
        raise ConfigError(
            "model.config", value, "must be a path, in a scenario file", "write the sizes in [model] instead"
        )
    return read_config(value)


def _cluster(table: object, mesh: Mesh) -> Cluster:
    given = _table("cluster", table, CLUSTER_KEYS)
    hardware = _text(given, "hardware")
    given = _with_hardware(hardware, given, mesh) if hardware else given
    rates = Cluster(world_size=1, gpus_per_node=1)
    links = {
        name: Link(
            given.get(f"{name}_bytes_per_s", default.bytes_per_s),
            given.get(f"{name}_latency_s", default.latency_s),
        )
        for name, default in (("nvlink", rates.nvlink), ("ib", rates.ib))
    }
    placement = given.get("placement")
    return Cluster(
        world_size=mesh.world_size,
        gpus_per_node=given.get("gpus_per_node", 8),
        nodes=given.get("nodes"),
        nodes_per_island=given.get("nodes_per_island", 1),
        hardware=hardware,
        placement=None if placement is None else _rank_table(placement),
        figures=GpuFigures(**{name: given[name] for name in GPU_FIGURES if name in given}),
        **links,
    )


def _with_hardware(name: str, given: Table, mesh: Mesh) -> Table:
    """The table with the hardware's nodes and links where it says nothing of them.

    A rate that no source states must be in the table, but for InfiniBand where all ranks share a domain.
    """
    hardware = hardware_preset(name)
    shape = {"gpus_per_node": hardware.gpus_per_node, "nodes_per_island": hardware.nodes_per_island}
    found: Table = {**shape, **given}
    for key in shape:
        whole_number(f"cluster.{key}", found[key])
    alone = found["gpus_per_node"] * found["nodes_per_island"] >= mesh.world_size
    for key in ("nvlink_bytes_per_s", "ib_bytes_per_s"):
        rate: float | None = getattr(hardware, key)
        if key not in found and not (rate is None and alone and key == "ib_bytes_per_s"):
            found[key] = hardware.need(key, "lay out the cluster's links")
    return found


def _rank_table(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(
            "cluster.placement", value, "must list [node, local index] of each rank", "write [[0, 0], ...]"
        )
    pairs = []
    for rank, entry in enumerate(value):
        pair = _whole_list(f"cluster.placement[{rank}]", entry)
        if len(pair) != 2:
            raise ConfigError(
                f"cluster.placement[{rank}]", entry, "must be [node, local index]", "write two numbers"
            )
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _token(table: object, mesh: Mesh) -> Token:
    given = _table("token", table, TOKEN_KEYS)
    given.setdefault("prompt", 16 * mesh.replica_size)
    return Token(**given)


def _placements(
    table: object, mesh: Mesh, model: ModelSpec | None, plan: Plan
) -> tuple[Placement | None, tuple[tuple[int, Placement], ...]]:
    given = _table("placement", table, PLACEMENT_KEYS)
    if model is None or model.experts is None:
        for key in ("slots", "slots_by_layer", "redundant"):
            if given.get(key):
                raise ConfigError(
                    f"placement.{key}",
                    given[key],
                    "places experts, but the model has none",
                    "give model.experts, or drop it",
                )
        return None, ()
    experts, ep = placed_experts(model, plan), mesh.ep
    by_layer = tuple(
        (
            check_moe_layer(number, model),
            Placement.table(_whole_list(f"placement.slots_by_layer.{number}", slots), ep, experts),
        )
        for number, slots in _by_layer("placement.slots_by_layer", given.pop("slots_by_layer", None))
    )
    if "redundant" in given or "redundant_at" in given:
        return _redundant(given, experts, ep), by_layer
    if "slots" in given:
        given["slots"] = _whole_list("placement.slots", given["slots"])
        given.setdefault("kind", PlacementKind.TABLE)
    return Placement(experts, ep, **given), by_layer


def _redundant(given: Table, experts: int, ep: int) -> Placement:
    """The slot table of ``redundant`` copies; once read, it is a table like any other."""
    others = [key for key in ("slots", "remainder") if key in given]
    if others or given.get("kind", PlacementKind.LINEAR) != PlacementKind.LINEAR:
        value = others[0] if others else given["kind"]
        raise ConfigError(
            "placement.redundant",
            given.get("redundant"),
            f"goes with linear placement, not with {value!r}",
            "write the whole table as slots = [...], or drop it",
        )
    slots = redundant_slots(experts, ep, given.get("redundant", 0), given.get("redundant_at", "end"))
    return Placement.table(slots, ep, experts)


def _by_layer(field: str, table: object) -> list[tuple[int, object]]:
    """(layer, value) pairs of a table keyed by layer number, ascending."""
    found: dict[int, object] = {}
    if table is not None and not isinstance(table, Mapping):
        raise ConfigError(field, table, "must be a table keyed by layer", "write 1 = [...], 2 = [...]")
    for key, value in (table or {}).items():
        text = str(key)
        if not (text.isascii() and text.isdigit() and len(text) <= 9) or isinstance(key, bool):
            raise ConfigError(
                f"{field}.{key}", value, "must be keyed by a layer number", "number layers from 1"
            )
        if int(text) in found:
            raise ConfigError(f"{field}.{key}", value, "gives a layer twice", "keep one")
        found[int(text)] = value
    return sorted(found.items())


def _picks(table: object) -> tuple[tuple[int, tuple[int, ...]], ...]:
    pairs = _by_layer("picks", table)
    return tuple(
        (layer, _whole_list(f"picks.{layer}", experts)) for layer, experts in pairs if experts is not None
    )
