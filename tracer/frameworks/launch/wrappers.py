"""Words of one command without what wraps them: env, docker, srun, torchrun, ``bash -c`` ..."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracer.frameworks.launch.expansion import Value
from tracer.frameworks.launch.programs import Program, module_program, script_program, word_program
from tracer.frameworks.launchers import LAUNCHERS, Counts, read_launcher
from tracer.frameworks.unread import Unread

MAX_WRAPPED = 24
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(?:ipython|pypy|python)[\d.]*(?:\.exe)?$")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_NO_SWITCHES = (
    "nohup exec builtin stdbuf nice catchsegv trtllm-llmapi-launch gdb nsys ncu rocprof rocprofv3 py-spy "
    "poetry pipenv pdm hatch rye pixi micromamba hpcrun rlaunch watch coverage"
)
_NO_VALUE: dict[str, str] = {
    **dict.fromkeys(_NO_SWITCHES.split(), ""),
    "env": "i 0 v ignore-environment",
    "sudo": "E n k b H S A i s preserve-env",
    "time": "p v",
    "command": "p",
    "setsid": "w f",
    "caffeinate": "i",
    "ionice": "t",
    "taskset": "a p",
    "timeout": "foreground v preserve-status",
    "chrt": "f r",
    "numactl": "s H show hardware localalloc l all a",
    "tini": "g s v",
    "dumb-init": "c v",
    "xvfb-run": "a",
    "uv": "no-sync isolated frozen locked active no-project q quiet v verbose offline no-dev all-extras "
    "no-cache",
    "conda": "no-capture-output live-stream",
    "mamba": "no-capture-output",
    "docker": "d i t it ti id dit rm init privileged P publish-all read-only detach interactive tty q quiet "
    "no-healthcheck oom-kill-disable",
    "apptainer": "nv rocm e cleanenv c contain C containall fakeroot f w writable writable-tmpfs no-home i "
    "no-init",
    "enroot": "r root w rw",
    "kubectl": "i t it ti stdin tty q quiet",
    "ray": "no-wait verbose v",
    "ssh": "A a f G g K k M N n q s T t tt V v X x Y y 4 6 C",
    "pdsh": "S R",
    "parallel-ssh": "i",
    "clush": "b B S L",
    "sbatch": "parsable exclusive W wait hold H test-only",
    "salloc": "exclusive",
    "flock": "n e",
    "su": "l",
    "xargs": "r 0 t",
}
"""Programs that start another, and their options that take no value; every other option takes one."""
_SAME = {
    "podman": "docker",
    "nerdctl": "docker",
    "nvidia-docker": "docker",
    "singularity": "apptainer",
    "oc": "kubectl",
}
#: Words that a wrapper has before what it wraps, besides its options.
_SUBCOMMANDS = {
    "docker": ("run", "exec", "create"), "uv": ("run",), "poetry": ("run",), "pipenv": ("run",),
    "pdm": ("run",), "hatch": ("run",), "rye": ("run",), "pixi": ("run",), "conda": ("run",),
    "mamba": ("run",), "micromamba": ("run",), "apptainer": ("exec", "run", "shell"), "enroot": ("start",),
    "kubectl": ("exec", "run"), "ray": ("job", "submit"), "nsys": ("profile", "launch"),
    "py-spy": ("record",),
}  # fmt: skip
#: Of these the first word that is no option is a name (an image, a host, a mask), not the command.
_NAMED = frozenset({"docker", "apptainer", "enroot", "kubectl", "ssh", "taskset", "timeout", "chrt", "flock"})


@dataclass(slots=True)
class Unwrapped:
    """One program and its words, with what its wrappers say.

    ``script`` is set where a wrapper holds shell text (``bash -c "..."``): the program is inside it.
    """

    words: tuple[str, ...]
    env: dict[str, Value] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    launcher: str | None = None
    wrappers: tuple[str, ...] = ()
    program: Program | None = None
    script: str | None = None
    arguments: tuple[str, ...] = ()
    name: str = ""


def unwrap(words: Sequence[str], env: Mapping[str, Value], counts: Counts) -> Unwrapped:
    """The innermost program of a command; its own words follow it.

    ``env`` are variables that the lines set before; ``counts`` what a batch script's header says.
    """
    found = Unwrapped(tuple(words), dict(env), counts)
    image: Program | None = None
    for _ in range(MAX_WRAPPED):
        rest = found.words
        while rest and (assigned := _ASSIGNMENT.fullmatch(rest[0])) and "." not in assigned.group(1):
            found.env[assigned.group(1)] = assigned.group(2)
            rest = rest[1:]
        found.words = rest
        if not rest or rest[0].startswith("-"):
            found.program = image
            return found
        base = rest[0].rsplit("/", 1)[-1]
        found.name = base
        program = word_program(base, rest[1:])
        if program is not None:
            return _programmed(found, program, rest[1:])
        if base in LAUNCHERS:
            _launch(found, base)
            if found.program is not None:
                return found
            if found.words and not found.words[0].startswith("-") and _is_script(found.words[0]):
                return _scripted(found)
            continue
        if _PYTHON.match(base):
            return _python(found)
        if base in _SHELLS:
            if not _shell(found):
                return found
            if found.script is not None:
                return found
            continue
        kind = _SAME.get(base, base)
        if kind not in _NO_VALUE:
            if _other(found, image):
                continue
            return found
        image = _strip(found, kind) or image
        found.wrappers += (base,)
        if found.script is not None:
            return found
    return found


def _programmed(found: Unwrapped, program: Program, rest: Sequence[str]) -> Unwrapped:
    found.program = program
    found.words = tuple(rest[program.skip :])
    return found


def _other(found: Unwrapped, image: Program | None) -> bool:
    """A word that is neither a wrapper nor a known program; whether what it wraps follows.

    A script of one's own (``./with_env.sh python3 -m sglang.launch_server``) wraps what comes after it.
    """
    word = found.words[0]
    place = _inner(found.words)
    if place is not None:
        found.wrappers += (found.name,)
        found.words = found.words[place:]
        return True
    if _is_script(word):
        _scripted(found)
    elif image is not None:
        found.program = image
    else:
        found.words = found.words[1:]
    return False


def _inner(words: Sequence[str]) -> int | None:
    """Where a known program or launcher stands behind an unknown word, before its first flag but one."""
    if script_program(words[0].rsplit("/", 1)[-1]) is not None:
        return None
    for place, word in enumerate(words[1:MAX_WRAPPED], 1):
        base = word.rsplit("/", 1)[-1]
        after = words[place + 1] if place + 1 < len(words) else ""
        if isinstance(word, Unread) or "://" in word:
            continue
        if base in LAUNCHERS and base != "accelerate" and after:
            return place
        if _PYTHON.match(base) and (after in ("-m", "-u") or after.endswith(".py")):
            return place
        if (base in ("vllm", "sglang") and after == "serve") or base in ("trtllm-serve", "trtllm-bench"):
            return place
    return None


def _is_script(word: str) -> bool:
    return word.endswith((".py", ".sh", ".bash")) or script_program(word.rsplit("/", 1)[-1]) is not None


def _scripted(found: Unwrapped) -> Unwrapped:
    found.name = found.words[0].rsplit("/", 1)[-1]
    found.program = script_program(found.name)
    found.words = found.words[1:]
    return found


def _launch(found: Unwrapped, base: str) -> None:
    """Take a process launcher and its options off."""
    rest = found.words[1:]
    if base == "accelerate":
        rest = rest[1:] if rest[:1] == ("launch",) else rest
    counts, taken = read_launcher(base, rest)
    found.counts = found.counts.under(counts)
    found.wrappers += (base,)
    found.launcher = base
    options = rest[:taken]
    if base == "srun":
        for option in options:
            name, _, value = option.partition("=")
            if name == "--export":
                for pair in value.split(","):
                    key, assigned, given = pair.partition("=")
                    found.env.update({key: given} if assigned else {})
    if base == "accelerate":
        found.program = Program("accelerate")
        found.words = tuple(options)
        found.arguments = tuple(rest[taken:])
        found.name = base
        return
    found.words = tuple(rest[taken:])
    if base.startswith("torch") and {"-m", "--module"} & set(options) and found.words:
        found.words = ("python", "-m", *found.words)
    elif found.words[:1] == ("--",):
        found.words = found.words[1:]


def _python(found: Unwrapped) -> Unwrapped:
    """``python -u -m module``, ``python script.py``, ``python -c code``."""
    words = list(found.words[1:])
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        takes = words[0] in ("-X", "-W")
        words = words[2 if takes else 1 :]
    if words[:1] == ["-m"] and len(words) > 1:
        module, rest = words[1], words[2:]
        if module in LAUNCHERS:
            inner = unwrap((module, *rest), found.env, found.counts)
            inner.wrappers = (*found.wrappers, *inner.wrappers)
            return inner
        found.name, found.program, found.words = module, module_program(module), tuple(rest)
        return found
    if words[:1] == ["-c"]:
        found.name, found.words = "python -c", ()
        return found
    found.words = tuple(words)
    return _scripted(found) if words else found


def _shell(found: Unwrapped) -> bool:
    """``bash -lc "text" args`` holds a script; ``bash run.sh args`` names one."""
    words = found.words[1:]
    place = 0
    while place < len(words) and words[place].startswith(("-", "+")):
        option = words[place]
        place += 1
        if not option.startswith("--") and option.startswith("-") and "c" in option:
            if place < len(words):
                found.script = words[place]
                found.arguments = tuple(words[place + 2 :])
                found.wrappers += (f"{found.name} -c",)
            return place < len(words)
        if option in ("-o", "+o", "-O"):
            place += 1
    found.words = tuple(words[place:])
    return bool(found.words)


def _strip(found: Unwrapped, kind: str) -> Program | None:
    """Take one wrapper off; the program that a container's image starts, if it is a known one."""
    words = list(found.words[1:])
    image: Program | None = None
    lone = set(_NO_VALUE[kind].split())
    for expected in _SUBCOMMANDS.get(kind, ()):
        if words and words[0] in _SUBCOMMANDS[kind]:
            words = words[1:]
        elif kind in ("docker", "ray", "kubectl") and expected == _SUBCOMMANDS[kind][0]:
            found.words = ()
            return None
    names = 1 if kind in _NAMED and not (kind == "taskset" and words[:1] == ["-c"]) else 0
    entry = ""
    while words:
        word = words[0]
        if word == "--":
            words = words[1:]
            break
        if kind in ("env", "sudo", "docker") and names == 0 and _ASSIGNMENT.fullmatch(word):
            break
        if not word.startswith("-"):
            if not names:
                break
            names -= 1
            image = image_program(word) if kind in ("docker", "apptainer") else None
            words = words[1:]
            if not names and kind != "kubectl":
                break
            continue
        name, equals, value = word.lstrip("-").partition("=")
        words = words[1:]
        if not equals and name not in lone and not _complete(name, lone, word):
            value, words = (words[0] if words else ""), words[1:]
        if name in ("e", "env", "environment") and kind in ("docker", "apptainer"):
            key, assigned, given = value.partition("=")
            if assigned:
                found.env[key] = given
        if name == "entrypoint" and kind == "docker":
            entry = value
        if name == "wrap" and kind == "sbatch":
            found.script = value
    if entry:
        words = [entry, *words]
    found.words = tuple(words)
    if kind in ("ssh", "pdsh", "clush", "su") and len(words) == 1 and re.search(r"\s", words[0]):
        found.script = words[0]
    return image


def _complete(name: str, lone: set[str], word: str) -> bool:
    """``-itd``, switches of one letter together, and ``-oL``, an option with its value."""
    if word.startswith("--") or len(name) < 2:
        return False
    return all(letter in lone for letter in name) or name[0] not in lone


def image_program(image: str) -> Program | None:
    """The program that a published image starts: ``vllm/vllm-openai`` is ``vllm serve``."""
    name = image.rsplit("/", 1)[-1].split(":")[0].split("@")[0]
    if name in ("vllm-openai", "vllm-openai-rocm", "vllm-cpu", "vllm"):
        return Program("vllm")
    return None
