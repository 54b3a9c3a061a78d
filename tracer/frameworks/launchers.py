"""What launchers say about the machine: torchrun, deepspeed, mpirun and srun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
LAUNCHERS: dict[str, Launcher] = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "deepspeed": Launcher(
        {"num-nodes": "nodes", "num-gpus": "per_node"},
        frozenset(
            {"module", "no-python", "no-local-rank", "no-ssh", "no-ssh-check", "force-multi"}
            | {"elastic-training", "save-pid", "bind-cores-to-rank"}
        ),
    ),
    "mpirun": Launcher(
        {"np": "tasks", "n": "tasks", "npernode": "per_node", "N": "per_node"},
        frozenset({"oversubscribe", "allow-run-as-root", "tag-output", "report-bindings", "q", "v"}),
        frozenset({"mca", "gmca"}),
    ),
    "srun": Launcher(
        {"N": "nodes", "nodes": "nodes", "n": "tasks", "ntasks": "tasks", "ntasks-per-node": "per_node"},
        frozenset(
            {"l", "label", "u", "unbuffered", "exclusive", "pty", "overlap", "no-container-mount-home"}
        ),
    ),
}
LAUNCHERS["mpiexec"] = LAUNCHERS["mpirun"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Nodes, processes a node and processes in all, as far as a launcher says."""

    nodes: int | None = None
    per_node: int | None = None
    tasks: int | None = None

    @property
    def gpus(self) -> int | None:
        """Processes in all: one a GPU."""
        if self.tasks is not None:
            return self.tasks
        return None if self.nodes is None or self.per_node is None else self.nodes * self.per_node

    def under(self, inner: Counts) -> Counts:
        """These counts with what an inner launcher (torchrun under srun) says in their place.

        A launcher under srun that counts processes a node counts GPUs; srun's tasks are then launchers.
        """
        counted = inner.per_node is not None or inner.tasks is not None
        return Counts(
            inner.nodes if inner.nodes is not None else self.nodes,
            inner.per_node if inner.per_node is not None else self.per_node,
            inner.tasks if counted else self.tasks,
        )


def read_launcher(name: str, words: Sequence[str]) -> tuple[Counts, int]:
    """What a launcher's own options say, and how many words they take."""
    launcher, found, place = LAUNCHERS[name], dict[str, int | None](), 0
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        option, equals, value = words[place].lstrip("-").partition("=")
        option = option if len(option) == 1 else option.replace("_", "-")
        if name in ("deepspeed",) and option not in _DEEPSPEED_OPTIONS:
            break
        place += 1
        if not equals and option not in launcher.lone:
            value = words[place] if place < len(words) else ""
            place += 2 if option in launcher.pairs else 1
        if option in launcher.meanings:
            found[launcher.meanings[option]] = whole(value)
    if name.startswith("torch"):
        found.setdefault("nodes", 1)
        found.setdefault("per_node", 1)
    return Counts(found.get("nodes"), found.get("per_node"), found.get("tasks")), min(place, len(words))


_DEEPSPEED_OPTIONS = LAUNCHERS["deepspeed"].lone | {
    *("hostfile", "H", "include", "i", "exclude", "e", "num-nodes", "num-gpus", "master-port", "master-addr"),
    *("node-rank", "launcher", "launcher-args", "autotuning", "min-elastic-nodes", "max-elastic-nodes"),
    *("bind-core-list", "ssh-port", "enable-each-rank-log", "venv-script"),
}


def whole(text: str) -> int | None:
    """A count of at least 1, or None for anything else (``auto``, ``1:4``, ``$NNODES``)."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        return None
    return int(text) or None
