"""Gathers the processes of a paste, while texts inside texts are read: scripts, manifests, configs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from tracer.errors import ConfigError, listed
from tracer.frameworks.documents import load_documents
from tracer.frameworks.launch.configs import disaggregated, processes_of
from tracer.frameworks.launch.expansion import Undecided, Value
from tracer.frameworks.launch.manifests import Pod, config_map_files, is_manifest, pods_of
from tracer.frameworks.launch.nothing import nothing_launched
from tracer.frameworks.launch.pages import CodeBlock
from tracer.frameworks.launch.programs import Program, overrides, program_of_flags, tool_of_overrides
from tracer.frameworks.launch.result import Launch, Process
from tracer.frameworks.launch.sameness import difference, other_model, shaping_values, ways_of
from tracer.frameworks.launch.script import ShellCommand, read_script
from tracer.frameworks.launch.settle import TASK_LAUNCHERS, config_of, in_pods, settled
from tracer.frameworks.launch.slurm import slurm_options
from tracer.frameworks.launch.texts import check_rendered
from tracer.frameworks.launch.tools.adapters import (
    adapted,
    dynamo_trtllm,
    megatron_swift,
    slime,
    without_dynamo,
)
from tracer.frameworks.launch.tools.recipes import (
    bridge_flags,
    recipe_model,
    recipe_note,
    recipe_of,
    recipe_settings,
    script_recipe,
)
from tracer.frameworks.launch.wrappers import Unwrapped, image_program, unwrap
from tracer.frameworks.launchers import Counts
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread, read_again

MAX_INSIDE = 6
MAX_PROCESSES = 128
_NOT_LAUNCHES = frozenset({
    "apt", "apt-get", "awk", "cat", "cd", "chmod", "cmake", "conda", "cp", "curl", "date", "docker",
    "echo", "git", "grep", "head", "helm", "hf", "hostname", "huggingface-cli", "kill", "kubectl", "ln",
    "locale", "ls", "make", "mamba", "mkdir", "modprobe", "module", "mv", "nvidia-cuda-mps-control",
    "nvidia-smi", "pip", "pip3", "pkill", "popd", "printf", "ps", "pushd", "ray", "rm", "scontrol",
    "sed", "sleep", "ssh-keygen", "sysctl", "tail", "tar", "tee", "test", "trap", "ulimit", "unzip",
    "uv", "wait", "wget", "which",
})  # fmt: skip
"""Commands around a launch that start no framework, whatever their words are."""


@dataclass(slots=True)
class Collector:
    """Gathers processes while texts inside texts are read."""

    hint: str | None
    pins: dict[str, str]
    typed: str = ""
    given: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    loose: list[tuple[list[str], dict[str, Value]]] = field(default_factory=list)
    in_pods: list[tuple[list[str], dict[str, Value]]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    inside: int = 0
    is_page: bool = False
    refused: list[ConfigError] = field(default_factory=list)

    def shell(
        self,
        text: str,
        env: Mapping[str, Value],
        counts: Counts,
        arguments: Sequence[str] = (),
        role: str = "",
    ) -> Mapping[str, Value]:
        """The commands of a shell text; ``env`` are variables set outside of it. Gives its variables."""
        if self.inside > MAX_INSIDE:
            raise ConfigError(
                "flags",
                f"{self.inside} texts inside each other",
                "are more than is read",
                "give the inner one",
            )
        self.inside += 1
        script = read_script(text, self.pins, tuple(arguments), env)
        header = Counts()
        if script.sbatch:
            self._say("Slurm batch script")
            options = slurm_options(script.sbatch)
            header = Counts(
                options.get("nodes"), options.get("per_node"), options.get("tasks"), options.get("gpus")
            )
        for command in script.commands:
            self._shell_command(command, counts.under(header), role)
            self.files.update(command.files)
        self.inside -= 1
        return {name: value for name, value in script.variables.items() if name != "@"}

    def page(self, blocks: Sequence[CodeBlock]) -> None:
        """The code blocks of a page; variables of one reach the next. What is refused is kept apart.

        Raises:
            ConfigError: what refuses the first block of a launch, where no other is read.
        """
        self._say("Markdown")
        env: Mapping[str, Value] = {}
        for block in blocks:
            depth, seen = self.inside, len(self.seen)
            try:
                if block.suffix == ".sh":
                    if "\n" in block.body.strip() or len(blocks) > 1:
                        self._say("shell script")
                    else:
                        self._say("command line")
                    env = self.shell(block.body, env, Counts())
                elif block.suffix and block.launches:
                    self.documents(block.body, block.suffix, "text")
            except ConfigError as error:
                self.inside = depth
                # A block of data that is no configuration (a reply, a schema) launches nothing.
                if block.launches and (block.suffix == ".sh" or error.field != "text"):
                    self.refused.append(error)
            if not block.launches:
                del self.seen[seen:]
        self.is_page = True
        if self.refused and not self.processes:
            raise self.refused[0]

    def _shell_command(self, command: ShellCommand, header: Counts, role: str) -> None:
        variables = dict(command.variables)
        self.command(list(command.words), variables, header, command.files, command.here, role)

    def command(
        self,
        words: Sequence[str],
        env: Mapping[str, Value],
        header: Counts,
        files: Mapping[str, str],
        here: str | None = None,
        role: str = "",
        image: Program | None = None,
        pod: Pod | None = None,
    ) -> None:
        """One command: the process it launches, if it is a launch.

        Raises:
            ConfigError: where a branch decides words that shape the mesh.
        """
        if len(self.processes) >= MAX_PROCESSES or not words:
            return
        if any(isinstance(word, Undecided) for word in words):
            self._each_way(words, env, header, files, here, role, image, pod)
            return
        found = unwrap(words, env, Counts(gpus_per_node=header.gpus_per_node))
        if {"srun", "mpirun", "mpiexec"} & set(found.wrappers) and header != Counts():
            found.counts = header.under(found.counts)
        found.env.update({name: value for name, value in self.pins.items() if name not in found.env})
        text = (
            found.script
            if found.script is not None
            else here
            if found.name in ("bash", "sh", "ssh", "sbatch")
            else None
        )
        if text is not None:
            for wrapper in found.wrappers or (found.name,):
                self._say(wrapper)
            shell_header = (
                found.counts.under(Counts())
                if "srun" in found.wrappers or "mpirun" in found.wrappers
                else header
            )
            before = len(self.processes)
            self.files.update(files)
            self.shell(read_again(text), found.env, shell_header, found.arguments, role)
            self._under_tasks(before, found)
            return
        program = found.program or image
        if program is not None and program.client:
            self.clients.append(found.name)
            return
        self._launch(found, program, files, role, pod)

    def _each_way(self, words: Sequence[str], env: Mapping[str, Value], *rest: Any) -> None:
        """A command whose words a branch decides: fine where every way launches the same mesh."""
        ways: list[list[Process]] = []
        for way in ways_of(words):
            inner = Collector(
                self.hint, self.pins, self.typed, self.given, files=self.files, inside=self.inside
            )
            inner.command(way, env, *rest)
            ways.append(inner.processes)
        first = ways[0]
        known = [shaping_values(process) for process in first] if len(ways) > 1 else []
        for other in ways[1:]:
            if len(other) != len(first):
                raise _branching(words, "what it launches")
            for one, two, values in zip(first, other, known, strict=True):
                differs = difference(one, two, values)
                if differs:
                    raise _branching(words, differs)
                if other_model(one, two):
                    # The mesh holds; no model is made of one way that the branch may not take.
                    first = [replace(each, model=_undecided_model(words)) for each in ways[0]]
        self.processes += first

    def _under_tasks(self, before: int, outer: Unwrapped) -> None:
        """Give processes read inside ``srun bash -c`` the counts of the srun outside."""
        if outer.launcher not in TASK_LAUNCHERS:
            return
        for place in range(before, len(self.processes)):
            process = self.processes[place]
            counts = outer.counts.under(process.counts)
            self.processes[place] = settled(
                replace(process, counts=counts, launcher=process.launcher or outer.launcher)
            )

    def _launch(
        self, found: Unwrapped, program: Program | None, files: Mapping[str, str], role: str, pod: Pod | None
    ) -> None:
        words = list(found.words)
        if program is None and found.name in _NOT_LAUNCHES:
            return
        written = {**self.files, **files}
        script = next((text for name, text in written.items() if PurePath(name).name == found.name), None)
        if program is None and script is not None and found.name.endswith(".sh"):
            self.shell(script, found.env, found.counts, tuple(words), role)
            return
        if program is not None and program.framework == "accelerate" and found.arguments:
            inner = program_of_flags(found.arguments)
            if inner is not None and inner.framework not in ("accelerate", "deepspeed"):
                program, words = inner, list(found.arguments)
        if program is not None and program.framework == "megatron" and not program.adapter:
            program = tool_of_overrides(words) or program
        if program is None or (
            program.framework == "megatron" and program.adapter == "" and found.launcher == "deepspeed"
        ):
            program = self._unnamed(found, words) or program
        if program is None:
            if words and not found.name:
                self.loose.append((words, found.env))
            elif found.name:
                self.seen.append(found.name)
            return
        for wrapper in found.wrappers:
            self._say(wrapper)
        config, tables = config_of(words, program.framework, written)
        process = Process(
            program.framework, tuple(words), _texts(found.env), found.counts, found.launcher, role, tables,
            config="" if tables is not None else config, adapter=program.adapter,
            model=recipe_of(found.name, words) if program.adapter == "nemo" else "",
        )  # fmt: skip
        if pod is not None:
            process = in_pods(process, pod)
        self._add(process)

    def _unnamed(self, found: Unwrapped, words: list[str]) -> Program | None:
        """The framework of a script whose name says nothing: by launcher, by the hint, or by its flags."""
        if not found.name and not found.launcher:
            return None if self.hint is None else Program(self.hint)
        if recipe_settings(recipe_of(found.name, words)):
            return Program("megatron", "nemo")
        if script_recipe(found.name) and program_of_flags(words) is None:
            return Program("megatron", "nemo")
        tool = tool_of_overrides(words)
        if tool is not None and self.hint in (None, tool.framework, "vllm", "sglang"):
            return tool
        if found.launcher == "deepspeed":
            return Program("deepspeed")
        if self.hint is not None:
            shaping = program_of_flags(words, (self.hint,))
            return Program(self.hint) if found.launcher or shaping is not None else None
        return program_of_flags(words)

    def _add(self, process: Process) -> None:
        if process.adapter == "ms-swift":
            self._say("ms-swift")
            process = megatron_swift(process)
        elif process.adapter in ("verl", "nemo", "nemo-rl"):
            self._say({"verl": "verl", "nemo": "NeMo overrides", "nemo-rl": "NeMo-RL"}[process.adapter])
            values: Mapping[str, object] = {
                **recipe_settings(process.model, process.words),
                **_hydra_name(process.words), **bridge_flags(process.words), **overrides(process.words),
            }  # fmt: skip
            counts = process.counts if process.launcher else Counts()
            found = adapted(process.adapter, values, counts, process.env)
            notes = _recipe_notes(process.words, process.model) if process.adapter == "nemo" else ()
            model = recipe_model(process.model) or process.model
            self.processes += [
                replace(one, notes=(*one.notes, *notes), model=one.model or model) for one in found
            ]
            return
        elif process.adapter == "disaggregated":
            self._say("trtllm-serve disaggregated")
            if process.tables is None:
                raise ConfigError(
                    "--config",
                    process.config or None,
                    "is the file with both pools, and it is not here",
                    "give that file: tokentrip from FILE",
                )
            self.processes += disaggregated(process.tables)
            return
        elif process.adapter == "dynamo" and process.framework == "tensorrt-llm":
            process = dynamo_trtllm(process)
        elif process.adapter == "slime":
            self._say("slime")
            self.processes += slime(process)
            return
        elif process.framework == "maxtext":
            values = overrides(process.words)
            files = [word for word in process.words if word.endswith((".yml", ".yaml")) and "=" not in word]
            other = next((file for file in files if not file.endswith("base.yml")), "")
            tables = {**(process.tables or {}), **values} or None
            process = replace(process, tables=tables, config=other)
        process = settled(process)
        self.processes.append(without_dynamo(process) if process.adapter == "dynamo" else process)

    def documents(self, text: str, suffix: str, name: str) -> None:
        """A configuration file: manifests, or the settings of one framework."""
        documents = load_documents(text, suffix, name)
        for document in documents:
            self.files.update(config_map_files(document))
        for document in documents:
            self.document(document, name)

    def document(self, document: object, name: str) -> None:
        """One document of a file."""
        manifest = is_manifest(document)
        if manifest:
            if manifest not in self.given:
                self._say(manifest)
            check_rendered(document, name)
            for pod in pods_of(document):
                self.pod(pod)
            self._serve_config(document, name)
            return
        if isinstance(document, list) and document and all(isinstance(one, dict) for one in document):
            for one in document:
                self.document(one, name)
            return
        if not isinstance(document, dict) or not document:
            raise ConfigError(name, str(document)[:80], "must be a table of keys", "write key: value")
        kind, found = processes_of({str(key): value for key, value in document.items()}, self.hint, name)
        self._say(kind)
        self.processes += found

    def _serve_config(self, document: object, name: str) -> None:
        """The Ray Serve application inside a RayService, which is YAML in a string."""
        spec = document.get("spec") if isinstance(document, dict) else None
        inner = spec.get("serveConfigV2") if isinstance(spec, dict) else None
        if isinstance(inner, str):
            for one in load_documents(inner, ".yaml", name):
                for pod in pods_of(one):
                    self.pod(pod)

    def pod(self, pod: Pod) -> None:
        """One container of a manifest."""
        if pod.tables is not None:
            self._say("engine_kwargs")
            tables = {key: value for key, value in pod.tables.items() if value is not None}
            self.processes.append(Process("vllm", tables=tables, role=pod.role or pod.name, from_file=True))
            return
        image = image_program(pod.image)
        words = list(pod.words)
        if len(words) == 1 and re.search(r"\s", words[0]):
            self.shell(words[0], pod.env, Counts(gpus_per_node=pod.gpus), (), pod.role)
            return
        header = Counts(gpus_per_node=pod.gpus)
        before, loose = len(self.processes), len(self.loose)
        text = [*words]
        if any("$" in word for word in words) and not _is_shell_text(words):
            expanded = read_script(_quoted_words(words), self.pins, (), pod.env)
            text = list(expanded.commands[0].words) if expanded.commands else text
        self.command(text, pod.env, header, {}, None, pod.role, image, pod)
        for place in range(before, len(self.processes)):
            self.processes[place] = in_pods(self.processes[place], pod)
        self.in_pods += self.loose[loose:]
        del self.loose[loose:]

    def _say(self, what: str) -> None:
        if what not in self.given and what not in ("exec", "nohup", "time", "command"):
            self.given.append(what)

    def launch(self) -> Launch:
        """All that was gathered; flags without a program go to the one launch there is."""
        for words, env in self.loose or ([] if self.processes else self.in_pods):
            if len(self.processes) == 1:
                only = self.processes[0]
                self.processes[0] = replace(
                    only, words=(*only.words, *words), env={**_texts(env), **only.env}
                )
            elif not self.processes:
                flagged = program_of_flags(words)
                name = self.hint or (flagged.framework if flagged is not None else None)
                if name is not None:
                    adapter = flagged.adapter if flagged is not None else ""
                    self._add(Process(name, tuple(words), _texts(env), adapter=adapter))
        if self.hint is not None and not self.processes and not self.seen and not self.clients:
            self.processes.append(Process(self.hint))
        if self.hint is not None:
            self._only_hinted()
        if not self.processes:
            raise nothing_launched(self.given, self.seen, self.clients, self.typed, self.is_page)
        return Launch(
            tuple(self.given), tuple(self.processes), tuple(self.seen), self.is_page, tuple(self.refused)
        )

    def _only_hinted(self) -> None:
        fits = [process for process in self.processes if _fits(process, self.hint)]
        starts = dict.fromkeys(one.framework for one in self.processes)
        if self.processes and not fits:
            raise ConfigError(
                "framework",
                self.hint,
                f"does not fit the line, which starts {listed(starts)}",
                "name that one",
            )
        self.processes = fits


def _recipe_notes(words: Sequence[str], recipe: str) -> tuple[Note, ...]:
    """A remark about a recipe or a file that gives what the overrides do not."""
    if recipe_settings(recipe, words):
        return (recipe_note(recipe, words),)
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        value = value if equals else "".join(words[place + 1 : place + 2])
        if name in ("--recipe", "--factory", "--config-name", "--config-path", "--config-file", "--config"):
            message = f"{name} {value} names settings beside the overrides, which may set sizes too; not read"
            return (Note("config_file_not_read", message, "give every size as an override"),)
    message = "the script's own configuration may set sizes that these overrides do not; it was not opened"
    return (Note("config_file_not_read", message, "give every size as an override"),)


def _hydra_name(words: Sequence[str]) -> dict[str, str]:
    """The configuration that ``--config-name`` or ``--config`` names, whose settings are not here."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in ("--config-name", "--config"):
            return {"config_name": value if equals else "".join(words[place + 1 : place + 2])}
    return {}


def _undecided_model(words: Sequence[str]) -> Unread:
    """The model of a launch that a branch gives one of several."""
    names = dict.fromkeys(name for word in words if isinstance(word, Undecided) for name in word.missing)
    return Unread("decided by a branch", tuple(names))


def _branching(words: Sequence[str], differs: str) -> ConfigError:
    undecided = [word for word in words if isinstance(word, Undecided)]
    names = dict.fromkeys(name for word in undecided for name in word.missing)
    shown = " ".join(word for word in undecided)
    sets = " ".join(f"--set {name}=..." for name in list(names)[:4])
    return ConfigError(
        "line",
        shown,
        f"is decided by a branch that these lines do not settle, and it changes {differs}",
        f"add {sets}" if sets else "give the line with the branch taken",
    )


def _fits(process: Process, hint: str | None) -> bool:
    """Whether a process is of the named framework; tools with several meshes always are."""
    return process.framework == hint or process.adapter in ("verl", "nemo-rl", "slime")


def _texts(variables: Mapping[str, Value]) -> dict[str, str]:
    """The variables that a program sees: arrays are the shell's own."""
    return {name: value for name, value in variables.items() if isinstance(value, str)}


def _is_shell_text(words: Sequence[str]) -> bool:
    """Whether the words already hand a text to a shell (``bash -c "..."``)."""
    return bool(words) and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh", "dash")


def _quoted_words(words: Sequence[str]) -> str:
    """Words as a shell line whose variables are still filled in."""
    return " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)
