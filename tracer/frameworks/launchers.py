"""What launchers say about the machine: torchrun, deepspeed, accelerate, mpirun and srun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tracer.frameworks.unread import Unread


@dataclass(frozen=True, slots=True)
class Launcher:
    """The options of a launcher that count processes, and the ones that take no value.

    ``pairs`` take two values (mpirun's ``--mca``). Every other option takes one.
    """

    meanings: Mapping[str, str]
    lone: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()


_TORCHRUN = Launcher(
    {"nnodes": "nodes", "nproc-per-node": "per_node"},
    frozenset({"standalone", "m", "module", "no-python", "run-path", "use-env"}),
)
_SRUN_LONE = """
    l label u unbuffered exclusive pty overlap no-container-mount-home container-mount-home
    container-writable container-readonly container-remap-root no-container-remap-root
    no-container-entrypoint container-entrypoint K kill-on-bad-exit k no-kill O overcommit s oversubscribe
    v verbose Q quiet multi-prog spread-job contiguous disable-status interactive x11 E preserve-env
    exact Z no-allocate use-min-nodes wait-all-nodes propagate
"""
_ACCELERATE_LONE = """
    multi-gpu cpu tpu mps m module no-python q quiet debug use-fsdp use-deepspeed use-megatron-lm
    use-parallelism-config tpu-use-cluster no-tpu-cluster tpu-use-sudo enable-cpu-affinity
    fsdp-use-orig-params use-xpu ipex dynamo-use-fullgraph dynamo-use-dynamic
    dynamo-use-regional-compilation main-training-function-run tpu-cluster
"""
LAUNCHERS: dict[str, Launcher] = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "deepspeed": Launcher(
        {"num-nodes": "nodes", "num-gpus": "per_node"},
        frozenset(
            {"module", "no-python", "no-local-rank", "no-ssh", "no-ssh-check", "force-multi"}
            | {"elastic-training", "save-pid", "bind-cores-to-rank", "enable-each-rank-log"}
        ),
    ),
    "mpirun": Launcher(
        {"np": "tasks", "n": "tasks", "c": "tasks",
         "npernode": "per_node", "N": "per_node", "ppn": "per_node"},
        frozenset({"oversubscribe", "allow-run-as-root", "tag-output", "report-bindings", "q", "v", "bynode"})
        | frozenset({"display-map", "nooversubscribe", "nolocal", "use-hwthread-cpus", "prefix-output"}),
        frozenset({"mca", "gmca", "omca", "pmca", "genv"}),
    ),
    "srun": Launcher(
        {
            "N": "nodes", "nodes": "nodes", "n": "tasks", "ntasks": "tasks", "ntasks-per-node": "per_node",
            "gpus-per-node": "gpus", "gres": "gpus",
        },
        frozenset(_SRUN_LONE.split()),
    ),
    "accelerate": Launcher(
        {"num-machines": "nodes", "num-processes": "tasks"}, frozenset(_ACCELERATE_LONE.split())
    ),
}  # fmt: skip
LAUNCHERS["mpiexec"] = LAUNCHERS["mpirun"]
LAUNCHERS["horovodrun"] = LAUNCHERS["mpirun"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Nodes, processes a node and processes in all, as far as a launcher says.

    ``gpus_per_node`` is what a scheduler grants a node; ``asks`` are counts that the launcher takes from
    a variable that nothing sets, by the option that wants them.
    """

    nodes: int | None = None
    per_node: int | None = None
    tasks: int | None = None
    gpus_per_node: int | None = None
    asks: Mapping[str, Unread] | None = None

    @property
    def gpus(self) -> int | None:
        """Processes in all: one per GPU."""
        if self.tasks is not None:
            return self.tasks
        return None if self.nodes is None or self.per_node is None else self.nodes * self.per_node

    def under(self, inner: Counts) -> Counts:
        """These counts with what an inner launcher (torchrun under srun) says in their place.

        A launcher under srun that counts processes per node counts GPUs; srun's tasks are then launchers.
        """
        counted = inner.per_node is not None or inner.tasks is not None or bool(inner.asks)
        asks = dict(inner.asks or {}) if counted else {**(self.asks or {}), **(inner.asks or {})}
        if inner.nodes is None and "nnodes" in asks and self.nodes is not None:
            # torchrun --nnodes $SLURM_NNODES under srun -N 4: one launcher per node of srun's.
            asks.pop("nnodes")
        return Counts(
            inner.nodes if inner.nodes is not None else self.nodes,
            inner.per_node if inner.per_node is not None else None if counted else self.per_node,
            inner.tasks if counted else self.tasks,
            inner.gpus_per_node or self.gpus_per_node,
            asks or None,
        )

    def changed(self, **counts: int | None) -> Counts:
        """These counts with some replaced where the new ones are known."""
        kept = {name: counts.get(name) or getattr(self, name) for name in ("nodes", "per_node", "tasks")}
        return replace(self, nodes=kept["nodes"], per_node=kept["per_node"], tasks=kept["tasks"])


def read_launcher(name: str, words: Sequence[str]) -> tuple[Counts, int]:
    """What a launcher's own options say, and how many words they take."""
    launcher, found, place = LAUNCHERS[name], dict[str, int | None](), 0
    asks: dict[str, Unread] = {}
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        word = words[place]
        option, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--") and not equals and len(option) > 1:
            option, value, equals = _stuck(launcher, option, isinstance(word, Unread))
        option = option if len(option) == 1 else option.replace("_", "-")
        if name in ("deepspeed",) and option not in _DEEPSPEED_OPTIONS:
            break
        place += 1
        if isinstance(word, Unread):
            value = Unread(value, word.missing)
        if not equals and option not in launcher.lone:
            value = words[place] if place < len(words) else ""
            place += 2 if option in launcher.pairs else 1
        if option in launcher.meanings:
            number = whole(value.rsplit(":", 1)[-1] if option == "gres" else value)
            found[launcher.meanings[option]] = number
            if isinstance(value, Unread) and number is None and launcher.meanings[option] != "gpus":
                asks[option] = value
        elif option in ("map-by", "ppr") and value.startswith("ppr:"):
            found["per_node"] = whole(value.split(":")[1])
    if name == "deepspeed":
        _on_hosts(words[:place], found)
    if name.startswith("torch"):
        found.setdefault("nodes", 1)
        found.setdefault("per_node", 1)
    counts = Counts(
        found.get("nodes"), found.get("per_node"), found.get("tasks"), found.get("gpus"), asks or None
    )
    return counts, min(place, len(words))


def _on_hosts(words: Sequence[str], found: dict[str, int | None]) -> None:
    """DeepSpeed without a host file starts one node; ``--include h1:0,1@h2:0,1`` names its GPUs."""
    options = [word.partition("=")[0].lstrip("-") for word in words]
    if not {"hostfile", "H"} & set(options) and "per_node" in found:
        found.setdefault("nodes", 1)
    for place, option in enumerate(options):
        if option in ("include", "i"):
            value = words[place].partition("=")[2] or (words[place + 1] if place + 1 < len(words) else "")
            slots = [part.partition(":")[2].split(",") for part in value.split("@")[:4096] if ":" in part]
            found["tasks"] = sum(map(len, slots)) or None


def _stuck(launcher: Launcher, option: str, unread: bool) -> tuple[str, str, str]:
    """``-N4`` or ``-N$NODES`` as -N and its value, and ``-lu`` as switches; other words as they are."""
    if option[0] in launcher.meanings and (option[1:].isdecimal() or unread):
        return option[0], option[1:], "="
    if option not in launcher.meanings and len(option) < 4 and all(one in launcher.lone for one in option):
        return option[0], "", "="
    return option, "", ""


_DEEPSPEED_OPTIONS = LAUNCHERS["deepspeed"].lone | {
    *("hostfile", "H", "include", "i", "exclude", "e", "num-nodes", "num-gpus", "master-port", "master-addr"),
    *("node-rank", "launcher", "launcher-args", "autotuning", "min-elastic-nodes", "max-elastic-nodes"),
    *("bind-core-list", "ssh-port", "venv-script"),
}


def whole(text: str) -> int | None:
    """A count of at least 1, or None for anything else (``auto``, ``1:4``, ``$NNODES``).

    ``4:4``, torchrun's range of one size, is that size.
    """
    low, colon, high = text.partition(":")
    text = low if colon and low == high else text
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        return None
    return int(text) or None
