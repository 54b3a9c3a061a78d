"""A paste that launches no framework: what was seen in it, and what to give."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracer.errors import ConfigError
from tracer.frameworks.launch.tools.other_tools import TOOL_COMMANDS, tool_error
from tracer.frameworks.registry import FRAMEWORKS

MAX_SHOWN_LINES = 12


def nothing_launched(
    given: Sequence[str], seen: Sequence[str], clients: Sequence[str], typed: str, is_page: bool
) -> ConfigError:
    """What is said where no command launches a framework: the tool, script or client that was seen."""
    known = f"known: {', '.join(FRAMEWORKS)}"
    what = " and ".join(given) or "text"
    names = [name for name in dict.fromkeys(seen) if re.fullmatch(r"[\w./@+-]*\w[\w./@ +-]*", name)]
    tool = next((name for name in names if name in TOOL_COMMANDS), None)
    if tool is not None:
        return tool_error(TOOL_COMMANDS[tool], "line", tool)
    scripts = [name for name in names if name.endswith((".sh", ".bash", ".slurm"))]
    if scripts:
        return ConfigError(
            "line", ", ".join(scripts[:6]), "is a script that these lines start, and it is not here",
            f"give it: tokentrip from {scripts[0]}",
        )  # fmt: skip
    if clients:
        return ConfigError(
            "line", clients[0], "is a client or a benchmark of a running server, not a launch",
            "give the line that starts the server",
        )  # fmt: skip
    if is_page and not names:
        return ConfigError(
            "text", _shown(typed), f"has code blocks, and none launches a framework ({known})",
            "give the launch line alone",
        )  # fmt: skip
    if names:
        return ConfigError(
            "line",
            ", ".join(names[:6]),
            f"does not say which framework it starts (read as {what}; none of its commands launches one)",
            f"name it: tokentrip from FRAMEWORK -- FLAGS; {known}",
        )
    return ConfigError(
        "line",
        _shown(typed),
        f"does not say which framework it starts (read as {what})",
        "begin it with the framework's name, such as 'vllm -tp 8'",
    )


def _shown(typed: str) -> str:
    """A line as typed; a text of many lines by its first, for the rest is not what is wrong."""
    lines = [line for line in typed.strip().splitlines() if line.strip()]
    if len(lines) <= MAX_SHOWN_LINES:
        return typed.strip()
    first = next((line for line in lines if not line.lstrip().startswith(("#", "//"))), lines[0])
    return f"{first.strip()} ... ({len(lines)} lines)"
