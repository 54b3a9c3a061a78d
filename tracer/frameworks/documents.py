"""YAML, TOML and JSON texts to plain values, bounded before they are built."""

from __future__ import annotations

from typing import Any

from tracer.errors import ConfigError

MAX_TEXT = 400_000
MAX_ALIASES = 64
MAX_DOCUMENTS = 100
MAX_DEPTH = 50
MAX_DOTS = 300
MAX_NODES = 60_000


def load_documents(text: str, suffix: str, name: str = "file") -> list[object]:
    """Every document of a text; ``suffix`` is ``.yaml``, ``.yml``, ``.toml`` or ``.json``.

    Raises:
        ConfigError: when it does not parse (with line and column), and above the bounds of this module.
    """
    if len(text) > MAX_TEXT:
        raise ConfigError(
            name,
            f"{len(text):,} characters",
            f"are more than {MAX_TEXT:,} of a configuration",
            "keep what launches",
        )
    if suffix in (".yaml", ".yml"):
        return _yaml(text, name)
    import json
    import tomllib

    if suffix == ".toml" and any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise ConfigError(name, f"over {MAX_DOTS} dots", "are more than a key has", "shorten the key")

    try:
        return [tomllib.loads(text) if suffix == ".toml" else json.loads(text)]
    except (ValueError, RecursionError) as error:
        kind = suffix.lstrip(".").upper()
        reason = str(error) or "nests too deep"
        raise ConfigError(
            name, f"{len(text)} characters", f"is not valid {kind}: {reason}", "mend the text"
        ) from error


def _yaml(text: str, name: str) -> list[object]:
    try:
        import yaml
    except ImportError as error:
        raise ConfigError(
            name, "YAML", "needs PyYAML", "pip install 'tokentrip[frameworks]', or give the file as JSON"
        ) from error
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, text, loader, name)
        return [document for document in yaml.load_all(text, Loader=loader) if document is not None]
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        if "{{" in text:
            raise _template(name, text) from error
        raise ConfigError(
            name, f"{len(text)} characters", f"is not valid YAML: {_reason(error)}", "mend the text"
        ) from error


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {said}" if mark is not None else str(said)


def _template(name: str, text: str) -> ConfigError:
    line = next(line.strip() for line in text.splitlines() if "{{" in line)
    return ConfigError(
        name,
        line,
        "is a template, not YAML yet",
        "render it first: helm template ..., and give what it prints",
    )


def _check_events(yaml: Any, text: str, loader: Any, name: str) -> None:
    """Count aliases, documents, nodes and depth while parsing: nothing is built yet."""
    aliases = documents = depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=loader), 1):
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        for count, most, what in (
            (aliases, MAX_ALIASES, "aliases"),
            (documents, MAX_DOCUMENTS, "documents"),
            (depth, MAX_DEPTH, "levels of nesting"),
            (nodes, MAX_NODES, "keys and values"),
        ):
            if count > most:
                raise ConfigError(
                    name,
                    f"over {most:,} {what}",
                    "is too large",
                    "keep the documents that launch a framework",
                )
