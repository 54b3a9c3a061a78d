"""The header of a Slurm batch script: what it grants, and the variables that Slurm sets of it."""

from __future__ import annotations

import re

_SBATCH = re.compile(r"(?m)^[ \t]*#SBATCH[ \t]+(.*)$")


def directives_of(text: str) -> tuple[str, ...]:
    """The options of every ``#SBATCH`` line."""
    return tuple(_SBATCH.findall(text))


def slurm_variables(directives: tuple[str, ...]) -> dict[str, str]:
    """What ``#SBATCH`` lines make Slurm set: nodes, tasks, GPUs per node."""
    options = slurm_options(directives)
    nodes, per_node, tasks = options.get("nodes"), options.get("per_node"), options.get("tasks")
    if tasks is None and nodes and per_node:
        tasks = nodes * per_node
    per_task = options.get("gpus_per_task")
    gpus = options.get("gpus") or (per_task if per_node in (None, 1) else None)
    found = {
        "SLURM_NNODES": nodes, "SLURM_JOB_NUM_NODES": nodes, "SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": per_node, "SLURM_GPUS_PER_NODE": gpus, "SLURM_GPUS_ON_NODE": gpus,
        "SLURM_GPUS_PER_TASK": per_task,
    }  # fmt: skip
    return {name: str(value) for name, value in found.items() if value is not None}


_SLURM = {
    "N": "nodes", "nodes": "nodes", "n": "tasks", "ntasks": "tasks", "ntasks-per-node": "per_node",
    "gpus-per-node": "gpus", "gres": "gpus", "gpus-per-task": "gpus_per_task",
}  # fmt: skip


def slurm_options(directives: tuple[str, ...]) -> dict[str, int]:
    """Counts of Slurm options: nodes, tasks, per_node, gpus."""
    found: dict[str, int] = {}
    for line in directives[:200]:
        words = line.split("#")[0].split()
        for place, word in enumerate(words):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and name not in _SLURM and name[:1] in ("N", "n") and name[1:].isdecimal():
                name, value = name[0], name[1:]
            elif not equals:
                value = words[place + 1] if place + 1 < len(words) else ""
            if word.startswith("-") and name in _SLURM:
                number = value.rsplit(":", 1)[-1].rsplit("-", 1)[-1]
                if number.isdecimal() and len(number) < 9:
                    found[_SLURM[name]] = int(number)
    return found
