"""``tokentrip from``: whatever launches a framework to its groups, and to a scenario."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.frameworks.launch.result import Launch
    from tracer.frameworks.opening import LaunchedMesh
    from tracer.scenario.scenario import BareScenario

MAX_BYTES = 4_000_000
_CONFIGS = (".yaml", ".yml", ".toml", ".json")


class LaunchCommand(click.Command):
    """Keeps the words after ``--`` apart, and says where a launch line goes when they lack it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options and files before ``--``, the launch after it."""
        if "--" in args:
            place = args.index("--")
            ctx.meta["tokentrip.launch"] = tuple(args[place + 1 :])
            args = args[:place]
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            typed = next((word for word in args if word.startswith(error.option_name)), error.option_name)
            raise ConfigError(
                "from",
                typed,
                "is not an option of tokentrip from",
                "put -- before the launch line: tokentrip from vllm -- -tp 2",
            ) from error


@dataclass(frozen=True, slots=True)
class _Given:
    """What stands before ``--``: a framework, a text with its name, or neither."""

    framework: str | None = None
    text: str | None = None
    name: str | None = None


@click.command("from", cls=LaunchCommand)
@click.argument("given", nargs=-1, metavar="[FRAMEWORK] [FILE|-] [-- LAUNCH LINE]")
@click.option("--gpus", type=int, help="GPUs in all; left out, the launch line or the flags say it.")
@click.option("--gpus-per-node", type=int, help="GPUs of a node [the launcher's count, else 8].")
@click.option("--hardware", help="The GPUs, such as h100 or gb200-nvl72: their nodes, memory and links.")
@click.option("--framework-version", "version", help="Version, where the layout changed with it (1.1.0).")
@click.option("--model", help="config.json, or the name of a model that ships: places experts, checks heads.")
@click.option("--file", type=click.Path(path_type=Path), help="The framework's own file, beside its flags.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable that nothing sets, or cluster.hbm_bytes=80e9.",
)
@click.option("--role", help="Of several meshes, the one to show and save (prefill, actor).")
@click.option("--save", type=click.Path(path_type=Path), help="Write the scenario here (.toml or .json).")
@click.option("--strict", is_flag=True, help="Refuse flags that are not known or not modelled.")
@json_option()
@click.option("--list", "listing", is_flag=True, help="The frameworks, and the releases they were read from.")
@click.pass_context
def from_command(
    context: click.Context,
    given: tuple[str, ...],
    gpus: int | None,
    gpus_per_node: int | None,
    hardware: str | None,
    version: str | None,
    model: str | None,
    file: Path | None,
    settings: tuple[str, ...],
    role: str | None,
    save: Path | None,
    strict: bool,
    as_json: bool,
    listing: bool,
) -> None:
    """Print the groups that a framework makes of what launches it.

    FILE is a shell script, a Slurm batch file, a Kubernetes or docker compose file, or the framework's YAML,
    TOML or JSON; - reads standard input. A launch line follows a double dash. FRAMEWORK is found, or named
    where nothing says it. Nothing is run, and no other file is opened. What the framework would refuse is
    refused, with a flag that works.

    \b
    Example:
      tokentrip from -- vllm serve MODEL -tp 2 -dp 4 --enable-expert-parallel
      tokentrip from megatron --gpus 16 -- --tensor-model-parallel-size 2
      tokentrip from train.sh --set NNODES=4
    """
    from tracer.frameworks.opening import Asked, meshes_of

    if listing:
        click.echo(_list())
        return
    cluster = [pair for pair in settings if pair.startswith("cluster.")]
    variables = _settings([pair for pair in settings if pair not in cluster])
    launch, tables = _read(given, context.meta.get("tokentrip.launch", ()), file, variables)
    from app.commands.common.model_source import read_model

    figures = _figures(cluster)
    asked = Asked(gpus, gpus_per_node, version, read_model(model), strict, tables, hardware, figures)
    meshes = _of_role(meshes_of(launch, asked), role)
    if save is not None:
        _save(save, _only(meshes).layout.scenario)
    if as_json:
        print_json(_as_json(launch, meshes))
    else:
        click.echo(_as_text(launch, meshes))


def _list() -> str:
    """Every framework with the release its rules and flags were read from."""
    from tracer.frameworks.registry import FRAMEWORKS, framework

    rows = [(name, framework(name)) for name in FRAMEWORKS]
    return "\n".join(
        f"{name:<14}{known.title:<14}{known.others.version}, read on {known.others.read_on}"
        for name, known in rows
    )


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not (name.isidentifier() or name.isdecimal()):
            raise ConfigError("--set", pair, "must be NAME=VALUE", "try --set NNODES=4")
        found[name] = value
    return found


def _figures(pairs: Sequence[str]) -> dict[str, object]:
    """Figures of a GPU or a link that ``--set cluster.KEY=VALUE`` states."""
    from tracer.errors import nearest
    from tracer.mesh.hardware import GPU_FIGURES

    known = (*GPU_FIGURES, "nvlink_bytes_per_s", "nvlink_latency_s", "ib_bytes_per_s", "ib_latency_s")
    found: dict[str, object] = {}
    for pair in pairs:
        key, _, text = pair.removeprefix("cluster.").partition("=")
        if key not in known:
            raise ConfigError("--set", pair, "is no figure of a GPU or a link", nearest(key, list(known)))
        try:
            found[key] = float(text)
        except ValueError as error:
            rule = "must be a number"
            raise ConfigError(f"cluster.{key}", text, rule, f"write --set cluster.{key}=50e9") from error
    return found


def _read(
    given: Sequence[str], words: Sequence[str], file: Path | None, settings: Mapping[str, str]
) -> tuple[Launch, Mapping[str, object] | None]:
    """The launch, and the tables of a configuration file that stands beside it."""
    from tracer.frameworks.config_files import read_framework_file
    from tracer.frameworks.launch.door import read_launch

    found = _told_apart(given)
    tables = read_framework_file(file) if file is not None else None
    beside = found.text is not None and words
    if beside and Path(found.name or "").suffix.lower() in _CONFIGS:
        from tracer.frameworks.config_files import parse_config

        tables = parse_config(found.text or "", Path(found.name or "").suffix.lower())
    elif beside:
        raise ConfigError(
            "from", found.name, "and a launch line after -- are two launches", "give one of them"
        )
    if found.text is not None and not words:
        launch = read_launch(found.text, framework=found.framework, filename=found.name, settings=settings)
    elif words or found.framework is not None:
        launch = read_launch(list(words), framework=found.framework, settings=settings)
    else:
        raise ConfigError(
            "from",
            None,
            "is given nothing to read",
            "give a file, - for standard input, or a launch line after --",
        )
    return launch, tables


def _told_apart(given: Sequence[str]) -> _Given:
    """Which of the words is the framework, and which the file."""
    from tracer.frameworks.registry import FRAMEWORKS, framework_name

    found = _Given()
    for word in given:
        if framework_name(word) and found.framework is None and not Path(word).is_file():
            found = _Given(word, found.text, found.name)
        elif found.text is None and any(letter.isspace() for letter in word):
            found = _Given(found.framework, word, None)
        elif found.text is None and (word == "-" or Path(word).exists()):
            found = _Given(found.framework, _text(word), None if word == "-" else word)
        elif len(given) > 2 or found.text is not None or found.framework is not None:
            raise ConfigError(
                "from",
                word,
                "is no file, and a launch line follows a double dash",
                f"put -- before it: tokentrip from -- {' '.join(given)[:80]}",
            )
        else:
            raise ConfigError(
                "from", word, "is neither a file nor a framework", f"frameworks: {', '.join(FRAMEWORKS)}"
            )
    return found


def _text(name: str) -> str:
    """The text of a file or of standard input, at most ``MAX_BYTES``."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("from", name, f"cannot be read: {error.strerror}", "check the path") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError("from", name, f"is larger than {MAX_BYTES:,} bytes", "give what launches, alone")
    return raw.decode("utf-8", errors="replace")


def _of_role(meshes: list[LaunchedMesh], role: str | None) -> list[LaunchedMesh]:
    if role is None:
        return meshes
    found = [mesh for mesh in meshes if mesh.role == role]
    if not found:
        roles = ", ".join(mesh.role or mesh.layout.framework for mesh in meshes)
        raise ConfigError("--role", role, "is no mesh of this launch", f"there are: {roles}")
    return found


def _only(meshes: list[LaunchedMesh]) -> LaunchedMesh:
    if len(meshes) > 1:
        roles = [mesh.role or mesh.layout.framework for mesh in meshes]
        raise ConfigError(
            "--save", ", ".join(roles), "are several meshes, and a scenario is one", f"add --role {roles[0]}"
        )
    return meshes[0]


def _as_json(launch: Launch, meshes: list[LaunchedMesh]) -> dict[str, Any]:
    """One mesh as before, with what was read; several as a list."""
    tables = [
        {
            **mesh.layout.to_dict(),
            "framework": mesh.layout.framework,
            "role": mesh.role,
            "commands": mesh.commands,
        }
        for mesh in meshes
    ]
    if len(tables) == 1:
        return {**tables[0], "given": list(launch.given)}
    return {"schema": 1, "given": list(launch.given), "meshes": tables}


def _as_text(launch: Launch, meshes: list[LaunchedMesh]) -> str:
    frameworks = ", ".join(dict.fromkeys(mesh.layout.framework for mesh in meshes))
    lines = [f"given: {launch}; framework: {frameworks}"]
    for number, mesh in enumerate(meshes, 1):
        part = f"{number} of {len(meshes)} meshes" if len(meshes) > 1 else ""
        commands = f"{mesh.commands} commands make this one mesh" if mesh.commands > 1 else ""
        head = ", ".join(text for text in (part, mesh.role, commands) if text)
        lines += ["", f"== {head} ==" if head else "", str(mesh.layout)] if head else [str(mesh.layout)]
    return "\n".join(lines)


def _save(path: Path, scenario: BareScenario) -> None:
    """Write a scenario whole; the suffix says how."""
    import json

    from app.exports.files import write_whole

    suffix = path.suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ConfigError("--save", str(path), "must end in .toml or .json", f"try {path.stem}.toml")
    write_whole(path, scenario.to_toml() if suffix == ".toml" else json.dumps(scenario.to_dict(), indent=2))
