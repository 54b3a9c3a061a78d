"""Kubernetes manifests, Helm-like values and docker compose: the containers in them, and their GPUs.

A container is known by its shape (``image`` with ``command`` or ``args``), so Deployments, Pods, Jobs,
LeaderWorkerSets, Dynamo graphs and compose services are read by one walk.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tracer.errors import ConfigError
from tracer.frameworks.documents import MAX_NODES

MAX_LOOKED_AT = 5_000
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu", "gpu.intel.com/i915", "habana.ai/gaudi")
_SKIPPED = frozenset(
    {
        "initContainers", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "status",
        "annotations", "healthcheck", "volumeMounts", "volumes", "affinity", "securityContext",
    }
)  # fmt: skip
_ROLES = (
    ("prefill", "prefill"), ("decode", "decode"), ("encode", "encode"), ("context", "prefill"),
    ("generation", "decode"), ("ctx", "prefill"),
)  # fmt: skip
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")


@dataclass(frozen=True, slots=True)
class Pod:
    """One container that may launch something.

    ``gpus`` is the limit of one pod, ``size`` the pods that make one launch (a LeaderWorkerSet's size, a
    Dynamo ``nodeCount``), ``replicas`` copies of it (the pods of a StatefulSet), ``image`` what is started
    when ``words`` name no program.
    """

    words: tuple[str, ...]
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    size: int = 1
    replicas: int = 1
    role: str = ""
    name: str = ""
    tables: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class _Context:
    """What the levels above a container say."""

    gpus: int | None = None
    size: int = 1
    replicas: int = 1
    role: str = ""
    name: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    serves: bool = False


def is_manifest(document: object) -> str:
    """``"Kubernetes Deployment"``, ``"docker compose file"`` ...; empty for any other document."""
    if not isinstance(document, dict):
        return ""
    if isinstance(document.get("kind"), str) and ("apiVersion" in document or "spec" in document):
        return f"Kubernetes {document['kind']} manifest"
    services = document.get("services")
    if isinstance(services, dict) and any(
        isinstance(one, dict) and ("image" in one or "build" in one) for one in services.values()
    ):
        return "docker compose file"
    if any(
        isinstance(document.get(key), dict) and "containers" in document[key] for key in ("decode", "prefill")
    ):
        return "llm-d values"
    image = document.get("image")
    if isinstance(image, dict) and {"command", "args"} & image.keys():
        return "Helm-like values"
    if _has_key(document, {"containers", "mainContainer", "vllmConfig", "llm_configs", "serveConfigV2"}):
        return "Helm-like values" if not _has_key(document, {"llm_configs"}) else "Ray Serve LLM config"
    return ""


def _has_key(node: object, wanted: set[str]) -> bool:
    """Whether one of these keys is anywhere in the first ``MAX_LOOKED_AT`` values."""
    waiting = [node]
    for _ in range(MAX_LOOKED_AT):
        if not waiting:
            return False
        here = waiting.pop()
        if isinstance(here, dict):
            if wanted & here.keys():
                return True
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here[:100]
    return False


def config_map_files(document: object) -> dict[str, str]:
    """The files of a ConfigMap, by name: what a launch beside it may be configured by."""
    if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
        return {}
    data = document.get("data")
    return (
        {str(name): text for name, text in data.items() if isinstance(text, str)}
        if isinstance(data, dict)
        else {}
    )


def pods_of(document: object) -> list[Pod]:
    """Every container of a document that has words to run, in order.

    Raises:
        ConfigError: above ``MAX_NODES`` values (aliases are followed).
    """
    return list(_Walk().node(document, "", _Context()))


class _Walk:
    def __init__(self) -> None:
        self.visited = 0

    def node(self, node: object, key: str, context: _Context) -> Iterator[Pod]:
        self.visited += 1
        if self.visited > MAX_NODES:
            raise ConfigError("file", f"over {MAX_NODES} values", "is too large", "keep what launches")
        if isinstance(node, list):
            for item in node:
                yield from self.node(item, key, context)
        elif isinstance(node, dict):
            context = _deeper(node, key, context)
            if isinstance(node.get("engine_kwargs"), dict):
                yield _ray_llm(node, context)
                return
            if isinstance(node.get("vllmConfig"), dict):
                yield _production_stack(node, context)
                return
            pod = _pod(node, context, key)
            if pod is not None:
                yield pod
            for name, value in node.items():
                if name not in _SKIPPED and not (pod is not None and name in ("command", "args", "env")):
                    yield from self.node(value, str(name), context)


def _deeper(node: Mapping[str, object], key: str, context: _Context) -> _Context:
    """The context below a mapping."""
    metadata = node.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    size = node.get("size") if "leaderTemplate" in node or "workerTemplate" in node else None
    multinode = node.get("multinode")
    if isinstance(multinode, dict):
        size = multinode.get("nodeCount")
    words, env = _parallelism(node)
    if env.get("DP_SIZE") and env.get("DP_SIZE_LOCAL"):
        size = size or int(env["DP_SIZE"]) // max(1, int(env["DP_SIZE_LOCAL"]))
    labelled = " ".join(
        str(text) for text in (key, node.get("name"), name, node.get("subComponentType")) if text
    )
    role = next((role for word, role in _ROLES if word in labelled.lower()), context.role)
    return replace(
        context,
        gpus=_limit(node) or context.gpus,
        size=size if isinstance(size, int) and 0 < size < 1 << 20 else context.size,
        replicas=_whole(node.get("replicas")) or context.replicas,
        role=role,
        name=name if isinstance(name, str) else context.name,
        env={**context.env, **_environment(node.get("envs")), **env},
        words=words or context.words,
        serves=context.serves or node.get("kind") == "LLMInferenceService",
    )


def _parallelism(node: Mapping[str, object]) -> tuple[tuple[str, ...], dict[str, str]]:
    """``parallelism: {tensor: 2, data: 8}`` of llm-d and KServe, as vLLM's flags and their variables."""
    table = node.get("parallelism")
    if not isinstance(table, dict):
        return (), {}
    flags = {
        "tensor": ("--tensor-parallel-size", "TP_SIZE"), "pipeline": ("--pipeline-parallel-size", "PP_SIZE"),
        "data": ("--data-parallel-size", "DP_SIZE"),
        "dataLocal": ("--data-parallel-size-local", "DP_SIZE_LOCAL"),
    }  # fmt: skip
    words: list[str] = []
    env: dict[str, str] = {}
    for key, (flag, variable) in flags.items():
        value = table.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 20:
            words += [flag, str(value)]
            env[variable] = str(value)
    if table.get("expert") is True:
        words.append("--enable-expert-parallel")
    return tuple(words), env


def _limit(node: Mapping[str, object]) -> int | None:
    """GPUs that ``resources`` grants, as Kubernetes, Dynamo or compose write it."""
    resources = node.get("resources")
    for kind in ("limits", "requests"):
        table = resources.get(kind) if isinstance(resources, dict) else None
        for name in _GPUS:
            number = _whole(table.get(name)) if isinstance(table, dict) else None
            if number:
                return number
    deploy = node.get("deploy")
    found: object = deploy
    for key in ("resources", "reservations", "devices"):
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, list) and found and isinstance(found[0], dict):
        ids = found[0].get("device_ids")
        return _whole(found[0].get("count")) or (len(ids) if isinstance(ids, list) else None)
    return _whole(node.get("requestGPU"))


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 7:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 20 else None


def _environment(table: object) -> dict[str, str]:
    """Variables as Kubernetes (a list of name and value), or compose (a table, or ``A=b``) gives them."""
    found: dict[str, str] = {}
    if isinstance(table, dict):
        found = {str(name): str(value) for name, value in table.items() if value is not None}
    for item in table if isinstance(table, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and "value" in item:
            found[item["name"]] = str(item["value"])
        elif isinstance(item, str) and "=" in item:
            name, _, value = item.partition("=")
            found[name] = value
    return found


def _pod(node: Mapping[str, object], context: _Context, key: str) -> Pod | None:
    """A container, when this mapping is one."""
    given = node.get("image")
    image = given if isinstance(given, str) else ""
    if isinstance(given, dict) and {"command", "args"} & given.keys():
        # Values of a chart: the container's words stand beside its repository.
        node = {**node, **{word: given[word] for word in ("command", "args") if word in given}}
        image = str(given.get("repository") or "image")
    named = "modelCommand" in node or "modelFormat" in node
    is_container = "name" in node or key == "mainContainer"
    if not (image or named or (is_container and ("command" in node or "args" in node))):
        return None
    runs = any(isinstance(node.get(word), str | list) for word in ("command", "args", "entrypoint"))
    if not (runs or "modelCommand" in node or (context.serves and context.words)):
        return None
    env = {**context.env, **_environment(node.get("env")), **_environment(node.get("environment"))}
    env.setdefault("LWS_GROUP_SIZE", str(context.size))
    words = [
        *_strings(node.get("entrypoint"), env),
        *_strings(node.get("command"), env),
        *_strings(node.get("args"), env),
    ]
    if (
        node.get("modelCommand") == "vllmServe"
        or (context.serves and not runs)
        or (isinstance(node.get("modelFormat"), dict) and not image)
    ):
        words = ["vllm", "serve", *context.words, *words]
    return Pod(
        tuple(words),
        image,
        env,
        gpus=context.gpus,
        size=context.size,
        replicas=context.replicas,
        role=context.role,
        name=str(node.get("name") or context.name),
    )


def _strings(value: object, env: Mapping[str, str]) -> list[str]:
    """Words of a list, or of a text as compose writes it.

    ``$(NAME)`` is filled in as Kubernetes does, or left for the shell's rules to ask for.
    """
    if isinstance(value, str):
        text = _REFERENCE.sub(lambda found: env.get(found.group(1), f"${{{found.group(1)}}}"), value)
        try:
            return shlex.split(text)
        except ValueError:
            return [text]
    items = value if isinstance(value, list) else []
    return [
        _REFERENCE.sub(lambda found: env.get(found.group(1), f"${{{found.group(1)}}}"), str(item))
        for item in items
        if isinstance(item, str | int | float)
    ]


def _ray_llm(node: Mapping[str, object], context: _Context) -> Pod:
    """An ``LLMConfig`` of Ray Serve: vLLM's engine arguments by name."""
    loading = node.get("model_loading_config")
    name = loading.get("model_id") if isinstance(loading, dict) else None
    kwargs = node["engine_kwargs"]
    assert isinstance(kwargs, dict)
    return Pod(
        (),
        "vllm",
        context.env,
        role=context.role,
        name=str(name or ""),
        tables={str(key): value for key, value in kwargs.items()},
    )


def _production_stack(node: Mapping[str, object], context: _Context) -> Pod:
    """A model of the vLLM production stack: ``vllmConfig: {tensorParallelSize: 4, extraArgs: [...]}``."""
    table = node["vllmConfig"]
    assert isinstance(table, dict)
    words = ["vllm", "serve"]
    for key, value in table.items():
        flag = "--" + re.sub(r"(?<!^)([A-Z])", r"-\1", str(key)).lower()
        if key != "extraArgs" and flag.endswith("-parallel-size") and isinstance(value, int | str):
            words += [flag, str(value)]
    words += _strings(table.get("extraArgs"), context.env)
    return Pod(
        tuple(words),
        "",
        context.env,
        gpus=_whole(node.get("requestGPU")),
        role=context.role,
        name=str(node.get("name") or ""),
    )
