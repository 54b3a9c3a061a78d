"""The one door: whatever was pasted to the processes it launches. Nothing is run, opened or fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from tracer.errors import ConfigError, listed
from tracer.frameworks.launch.adapters import adapted, megatron_swift
from tracer.frameworks.launch.configs import disaggregated, processes_of
from tracer.frameworks.launch.documents import load_documents
from tracer.frameworks.launch.expansion import Undecided, Unread
from tracer.frameworks.launch.manifests import Pod, is_manifest, pods_of
from tracer.frameworks.launch.programs import Program, overrides, program_of_flags, tool_of_overrides
from tracer.frameworks.launch.result import Launch, Process
from tracer.frameworks.launch.sameness import difference, ways_of
from tracer.frameworks.launch.script import ShellCommand, read_script, slurm_options, slurm_variables
from tracer.frameworks.launch.words import MAX_CHARACTERS, MAX_WORDS
from tracer.frameworks.launch.wrappers import Unwrapped, image_program, unwrap
from tracer.frameworks.launchers import Counts, whole
from tracer.frameworks.registry import FRAMEWORKS, framework

MAX_INSIDE = 6
MAX_PROCESSES = 128
SHELL_SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".sub", ".zsh", ".cmd")
_CONFIG_SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_KEY = re.compile(r"[\w.\"'/-]+\s*:(?:\s|$)")
_SERVERS = frozenset({"vllm", "sglang"})
_TASK_LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "horovodrun"})
_NOT_LAUNCHES = frozenset(
    [
        "git",
        "pip",
        "pip3",
        "uv",
        "cd",
        "echo",
        "ls",
        "rm",
        "cp",
        "mv",
        "which",
        "apt",
        "apt-get",
        "curl",
        "wget",
        "kill",
        "pkill",
        "ps",
        "grep",
        "cat",
        "tail",
        "hf",
        "ray",
        "docker",
        "huggingface-cli",
        "make",
        "cmake",
        "mkdir",
        "chmod",
        "sed",
        "awk",
        "head",
        "module",
        "sleep",
        "wait",
        "kubectl",
        "helm",
        "hostname",
        "scontrol",
        "tee",
        "curl",
        "ln",
        "tar",
        "unzip",
        "ssh-keygen",
        "conda",
        "mamba",
        "modprobe",
        "sysctl",
        "ulimit",
        "trap",
        "printf",
        "date",
        "pushd",
        "popd",
        "nvidia-smi",
        "nvidia-cuda-mps-control",
        "locale",
        "test",
    ]
)


def read_launch(
    given: str | Sequence[str],
    *,
    framework: str | None = None,
    filename: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Launch:
    """What a paste launches: a shell script or line, words already split, a manifest or a config.

    ``framework`` is a name that the caller gives, else it is found. ``filename`` tells the kind of the
    text by its ending. ``settings`` give variables that nothing in the text sets (``--set NNODES=4``).

    >>> launch = read_launch("torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2")
    >>> launch.frameworks, launch.processes[0].counts.gpus
    (('megatron',), 8)

    Raises:
        ConfigError: for a text that is not read, and where nothing in it launches a framework.
    """
    hint = _hint(framework)
    reader = _Collector(hint, dict(settings or {}))
    if not isinstance(given, str):
        words = [str(word) if type(word) is not Unread else word for word in given]
        if len(words) == 1 and re.search(r"\s", words[0]):
            return read_launch(words[0], framework=framework, filename=filename, settings=settings)
        if len(words) > MAX_WORDS:
            raise ConfigError("flags", f"{len(words)} words", f"are more than {MAX_WORDS} words", "cut them")
        reader.given.append("command")
        reader.command(words, {}, Counts(), {})
        return reader.launch()
    _check_text(given, filename)
    given, fenced = _unfenced(given, filename)
    if fenced:
        reader.given.append("Markdown")
    kind = _kind(given, None if fenced else filename)
    if kind in _CONFIG_SUFFIXES:
        reader.documents(given, kind, filename or "text")
    else:
        reader.given.append("shell script" if "\n" in given.strip() else "command line")
        reader.shell(given, {}, Counts())
    return reader.launch()


def _unfenced(text: str, filename: str | None) -> tuple[str, bool]:
    """The code blocks of a Markdown page alone, when the text has any; prose is no shell."""
    blocks = re.findall(r"(?ms)^[ \t]*```([^\n`]*)\n(.*?)^[ \t]*```[ \t]*$", text)
    outside = re.sub(r"(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$", "", text).strip()
    if not blocks or (filename is None and not outside and len(blocks) == 1):
        return (blocks[0][1], False) if blocks else (text, False)
    shell = [body for kind, body in blocks if kind.strip() in ("", "bash", "sh", "shell", "console", "zsh")]
    return "\n".join(shell or [body for _, body in blocks]), True


def _hint(name: str | None) -> str | None:
    if name is None:
        return None
    return framework(name).name


def _check_text(text: str, filename: str | None) -> None:
    name = filename or "text"
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            "flags",
            f"{len(text)} characters",
            f"are more than {MAX_CHARACTERS} characters",
            "keep the launch",
        )
    sample = text[:4096]
    odd = sum(1 for letter in sample if (letter < " " and letter not in "\n\r\t\f\x1b") or letter == "\ufffd")
    if "\x00" in text or odd > len(sample) // 20 + 2:
        raise ConfigError(
            name, f"{len(text)} characters", "is not text", "give a script, a manifest or a config"
        )


def _kind(text: str, filename: str | None) -> str:
    """``.yaml``, ``.toml``, ``.json`` or ``.sh``, by the file's ending, else by the text."""
    suffix = PurePath(filename).suffix.lower() if filename else ""
    if suffix in _CONFIG_SUFFIXES:
        return suffix
    if suffix in SHELL_SUFFIXES:
        return ".sh"
    if suffix in (".py", ".ipynb") or re.search(r"(?m)\A\s*(?:import|from) \w[\w.]*(?: import .+)?$", text):
        raise ConfigError(
            filename or "text",
            text.strip().splitlines()[0] if text.strip() else "",
            "is Python, which is not read: its values are known when it runs",
            "give the line that launches it, or its flags: tokentrip from FRAMEWORK -- ...",
        )
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0].strip() if lines else ""
    if text.lstrip().startswith("#!"):
        return ".sh"
    if first.startswith("{") and re.match(r"\{\s*(\"|\}|$)", first):
        return ".json"
    if re.fullmatch(r"\[\[?[\w.\"-]+\]\]?(?:\s*#.*)?", first):
        return ".toml"
    if first == "---" or _KEY.match(first) or (first.startswith("- ") and len(lines) > 1 and ":" in first):
        return ".yaml"
    if re.match(r"[A-Za-z_][\w.-]* = ", first):
        return ".toml"
    return ".sh"


@dataclass(slots=True)
class _Collector:
    """Gathers processes while texts inside texts are read."""

    hint: str | None
    pins: dict[str, str]
    given: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    loose: list[tuple[list[str], dict[str, str]]] = field(default_factory=list)
    inside: int = 0

    def shell(
        self, text: str, env: Mapping[str, Value], counts: Counts, arguments: Sequence[str] = (), role: str = ""
    ) -> None:
        """The commands of a shell text; ``env`` are variables set outside of it."""
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
        self.inside -= 1

    def _shell_command(self, command: ShellCommand, header: Counts, role: str) -> None:
        variables = dict(command.variables)
        self.command(list(command.words), variables, header, command.files, command.here, role)

    def command(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
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
            self.shell(text, found.env, shell_header, found.arguments, role)
            self._under_tasks(before, found)
            return
        program = found.program or image
        if program is not None and program.client:
            self.clients.append(found.name)
            return
        self._launch(found, program, files, role, pod)

    def _each_way(self, words: Sequence[str], env: Mapping[str, str], *rest: Any) -> None:
        """A command whose words a branch decides: fine where every way launches the same mesh."""
        ways: list[list[Process]] = []
        for way in ways_of(words):
            inner = _Collector(self.hint, self.pins, self.given, inside=self.inside)
            inner.command(way, env, *rest)
            ways.append(inner.processes)
        first = ways[0]
        for other in ways[1:]:
            if len(other) != len(first):
                raise _branching(words, "what it launches")
            for one, two in zip(first, other, strict=True):
                differs = difference(one, two)
                if differs:
                    raise _branching(words, differs)
        self.processes += first

    def _under_tasks(self, before: int, outer: Unwrapped) -> None:
        """Give processes read inside ``srun bash -c`` the counts of the srun outside."""
        if outer.launcher not in _TASK_LAUNCHERS:
            return
        for place in range(before, len(self.processes)):
            process = self.processes[place]
            counts = outer.counts.under(process.counts)
            self.processes[place] = _settled(
                replace(process, counts=counts, launcher=process.launcher or outer.launcher)
            )

    def _launch(
        self, found: Unwrapped, program: Program | None, files: Mapping[str, str], role: str, pod: Pod | None
    ) -> None:
        words = list(found.words)
        if program is None and found.name in _NOT_LAUNCHES:
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
        config, tables = _config(words, program.framework, files)
        process = Process(
            program.framework, tuple(words), found.env, found.counts, found.launcher, role, tables,
            config="" if tables is not None else config, adapter=program.adapter,
        )  # fmt: skip
        if pod is not None:
            process = _in_pods(process, pod)
        self._add(process)

    def _unnamed(self, found: Unwrapped, words: list[str]) -> Program | None:
        """The framework of a script whose name says nothing: the launcher's, the hint, or that of its flags."""
        if not found.name and not found.launcher:
            return None if self.hint is None else Program(self.hint)
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
            values = overrides(process.words)
            counts = process.counts if process.launcher else Counts()
            self.processes += adapted(process.adapter, values, counts, process.env)
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
        elif process.framework == "maxtext":
            values = {key: value for key, value in overrides(process.words).items()}
            process = replace(process, tables={**(process.tables or {}), **values}, words=())
        self.processes.append(_settled(process))

    def documents(self, text: str, suffix: str, name: str) -> None:
        """A configuration file: manifests, or the settings of one framework."""
        for document in load_documents(text, suffix, name):
            self.document(document, name)

    def document(self, document: object, name: str) -> None:
        """One document of a file."""
        manifest = is_manifest(document)
        if manifest:
            if manifest not in self.given:
                self._say(manifest)
            _check_rendered(document, name)
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
        before = len(self.processes)
        text = [*words]
        if any("$" in word for word in words) and not _is_shell_text(words):
            expanded = read_script(_quoted_words(words), self.pins, (), pod.env)
            text = list(expanded.commands[0].words) if expanded.commands else text
        self.command(text, pod.env, header, {}, None, pod.role, image, pod)
        for place in range(before, len(self.processes)):
            self.processes[place] = _in_pods(self.processes[place], pod)

    def _say(self, what: str) -> None:
        if what not in self.given:
            self.given.append(what)

    def launch(self) -> Launch:
        """All that was gathered; flags without a program go to the one launch there is."""
        for words, env in self.loose:
            if len(self.processes) == 1:
                only = self.processes[0]
                self.processes[0] = replace(only, words=(*only.words, *words), env={**env, **only.env})
            elif not self.processes:
                flagged = program_of_flags(words)
                name = self.hint or (flagged.framework if flagged is not None else None)
                if name is not None:
                    adapter = flagged.adapter if flagged is not None else ""
                    self._add(Process(name, tuple(words), env, adapter=adapter))
        if self.hint is not None and not self.processes and not self.seen and not self.clients:
            self.processes.append(Process(self.hint))
        if self.hint is not None:
            self._only_hinted()
        if not self.processes:
            raise self._nothing()
        return Launch(tuple(self.given), tuple(self.processes), tuple(self.seen))

    def _only_hinted(self) -> None:
        fits = [process for process in self.processes if _fits(process, self.hint)]
        if self.processes and not fits:
            raise ConfigError(
                "framework",
                self.hint,
                f"does not fit the line, which starts {listed(dict.fromkeys(one.framework for one in self.processes))}",
                "name that one",
            )
        self.processes = fits

    def _nothing(self) -> ConfigError:
        known = f"known: {', '.join(FRAMEWORKS)}"
        what = " and ".join(self.given) or "text"
        if self.clients:
            return ConfigError(
                "line", self.clients[0], "is a client or a benchmark of a running server, not a launch",
                "give the line that starts the server",
            )  # fmt: skip
        seen = [name for name in dict.fromkeys(self.seen) if name]
        if seen:
            return ConfigError(
                "line",
                ", ".join(seen[:6]),
                f"does not say which framework it starts (read as {what}; no launch of one is among its commands)",
                f"name it: tokentrip from FRAMEWORK -- FLAGS; {known}",
            )
        return ConfigError(
            "line",
            what,
            "does not say which framework it starts",
            "begin it with the framework's name, such as 'vllm -tp 8'",
        )


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
    if process.framework == hint or process.adapter in ("verl", "nemo-rl"):
        return True
    return False


def _settled(process: Process) -> Process:
    """Counts as the framework means them: a server starts its own workers, one task of srun each."""
    counts, env = process.counts, process.env
    if process.framework in _SERVERS and process.launcher in _TASK_LAUNCHERS:
        counts = Counts(nodes=counts.nodes, gpus_per_node=counts.gpus_per_node)
    if process.framework == "torchtitan" and process.launcher is None:
        # run_train.sh starts 8 where NGPU is not given.
        per_node = env.get("NGPU", "8" if process.adapter == "run_train.sh" else None)
        if isinstance(per_node, Unread):
            counts = replace(counts, asks={"NGPU": per_node})
        elif per_node is not None and whole(per_node):
            counts = replace(counts, nodes=counts.nodes or 1, per_node=whole(per_node))
    return replace(process, counts=counts, role=process.role or _own_role(process))


def _own_role(process: Process) -> str:
    """``prefill`` or ``decode`` where the launch itself says so (SGLang, vLLM's KV transfer, Dynamo)."""
    words = process.words
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        value = value if equals else words[place + 1] if place + 1 < len(words) else ""
        plain = name.replace("_", "-")
        if plain == "--disaggregation-mode" and value in ("prefill", "decode"):
            return value
        if plain == "--kv-transfer-config":
            found = re.search(r"kv_(producer|consumer)\b", value)
            return {"producer": "prefill", "consumer": "decode"}[found.group(1)] if found else ""
        if plain in ("--is-prefill-worker", "--is-decode-worker"):
            return plain.split("-")[3]
    return ""


def _in_pods(process: Process, pod: Pod) -> Process:
    """A process with what its manifest grants: GPUs per pod, and pods of one launch."""
    counts = process.counts
    if counts.gpus_per_node is None:
        counts = replace(counts, gpus_per_node=pod.gpus)
    granted = pod.gpus * pod.size if pod.gpus else None
    return replace(process, counts=counts, pods=granted, role=process.role or pod.role)


def _is_shell_text(words: Sequence[str]) -> bool:
    """Whether the words already hand a text to a shell (``bash -c "..."``)."""
    return bool(words) and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh", "dash")


def _quoted_words(words: Sequence[str]) -> str:
    """Words as a shell line whose variables are still filled in."""
    return " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)


def _check_rendered(document: object, name: str) -> None:
    """Refuse a chart that still has its template marks."""
    text = str(document)[:200_000]
    found = re.search(r"\{\{[^}]{0,80}\}\}", text)
    if found and "Values" in found.group():
        raise ConfigError(
            name, found.group(), "is a template, not a manifest yet",
            "render it first: helm template ..., and give what it prints",
        )  # fmt: skip


def _config(
    words: Sequence[str], name: str, files: Mapping[str, str]
) -> tuple[str, Mapping[str, object] | None]:
    """The configuration file that a launch names, and its tables where a here-document wrote it."""
    flag = next((flag for flag in framework(name).flags if flag.dest == "config_file"), None)
    spellings = (*flag.spellings, "-c") if flag is not None else ("-c", "--config")
    path = ""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in spellings or option.replace("_", "-") in spellings:
            path = value if equals else words[place + 1] if place + 1 < len(words) else ""
    text = files.get(path)
    if text is None:
        base = PurePath(path).name if path else ""
        text = next((body for file, body in files.items() if base and PurePath(file).name == base), None)
    if not path or text is None:
        return path, None
    suffix = PurePath(path).suffix.lower()
    documents = load_documents(text, suffix if suffix in _CONFIG_SUFFIXES else ".yaml", path)
    table = documents[0] if documents else {}
    return path, {str(key): value for key, value in table.items()} if isinstance(table, dict) else None
