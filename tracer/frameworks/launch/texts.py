"""What kind of text was pasted: shell, Markdown around shell, YAML, TOML, JSON, or nothing that is read."""

from __future__ import annotations

import re
from pathlib import PurePath

from tracer.errors import ConfigError
from tracer.frameworks.launch.words import MAX_CHARACTERS

SHELL_SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".sub", ".zsh", ".cmd")
CONFIG_SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_KEY = re.compile(r"[\w.\"'/-]+\s*:(?:\s|$)")


def unit_commands(text: str) -> str:
    """The commands of a systemd unit, as shell lines; empty for any other text."""
    if not re.search(r"(?m)^\s*\[(?:Unit|Service)\]\s*$", text) or "ExecStart=" not in text:
        return ""
    joined = re.sub(r"\\\s*\n\s*", " ", text)
    return "\n".join(re.findall(r"(?m)^\s*ExecStart=[-@:+!]*(.+)$", joined))


def check_text(text: str, filename: str | None) -> None:
    """Refuse what is too long, or no text.

    Raises:
        ConfigError: naming the file.
    """
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


def kind_of(text: str, filename: str | None) -> str:
    """``.yaml``, ``.toml``, ``.json`` or ``.sh``, by the file's ending, else by the text."""
    suffix = PurePath(filename).suffix.lower() if filename else ""
    if suffix in CONFIG_SUFFIXES:
        return suffix
    if suffix in SHELL_SUFFIXES:
        return ".sh"
    if suffix in (".py", ".ipynb") or re.search(r"(?m)\A\s*(?:import|from) \w[\w.]*(?: import .+)?$", text):
        recipe = re.search(r"\b(\w{1,60})\.pretrain_recipe\(", text)
        fix = "give the line that launches it, or its flags: tokentrip from FRAMEWORK -- ..."
        if recipe is not None:
            called = f"{recipe.group(1)}(num_nodes=N)"
            fix = f"give its recipe: tokentrip from -- nemo llm pretrain --factory '{called}'"
        raise ConfigError(
            filename or "text",
            text.strip().splitlines()[0] if text.strip() else "",
            "is Python, which is not read: its values are known when it runs",
            fix,
        )
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0].strip() if lines else ""
    if text.lstrip().startswith("#!"):
        return ".sh"
    if first.startswith("{{"):
        return ".yaml"
    if first.startswith("[{") or first == "[":
        return ".json"
    if first.startswith("{") and re.match(r"\{\s*(\"|\}|$)", first):
        return ".json"
    if re.fullmatch(r"\[\[?[\w.\"-]+\]\]?(?:\s*#.*)?", first):
        return ".toml"
    if first == "---" or _KEY.match(first) or (first.startswith("- ") and len(lines) > 1 and ":" in first):
        return ".yaml"
    if re.match(r"[A-Za-z_][\w.-]* = ", first):
        return ".toml"
    return ".sh"


def check_rendered(document: object, name: str) -> None:
    """Refuse a chart that still has its template marks."""
    text = str(document)[:200_000]
    found = re.search(r"\{\{[^}]{0,80}\}\}", text)
    if found and "Values" in found.group():
        raise ConfigError(
            name, found.group(), "is a template, not a manifest yet",
            "render it first: helm template ..., and give what it prints",
        )  # fmt: skip
