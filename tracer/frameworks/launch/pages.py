"""The code blocks of a page in Markdown or reStructuredText: each is read for itself, prose is not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from tracer.errors import ConfigError

_FENCE = re.compile(r"\s*(?:>\s*)?(```+|~~~+)\s*\{?\.?([\w+.-]*)")
_DIRECTIVE = re.compile(r"(\s*)\.\. (?:code-block|code|sourcecode)::\s*([\w+.-]*)\s*$")
_SHELL = frozenset(
    {"", "bash", "sh", "shell", "console", "zsh", "shell-session", "shellsession", "text", "txt"}
)
_CONFIG = {"yaml": ".yaml", "yml": ".yaml", "json": ".json", "toml": ".toml"}
_LAUNCHES = re.compile(
    r"vllm|sglang|trtllm|tensorrt_llm|torchrun|torch\.distributed|deepspeed|accelerate launch|megatron"
    r"|pretrain_|torchtitan|run_train|MaxText|maxtext|nanotron|srun |mpirun|nemo |verl\."
    r"|actor_rollout_ref|_parallel"
)


MAX_BLOCKS = 1_000


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block: ``suffix`` is ``.sh`` or that of a configuration, empty for a language that is not read."""

    suffix: str
    body: str

    @property
    def launches(self) -> bool:
        """Whether a name of a launcher or a framework stands in it."""
        return _LAUNCHES.search(self.body) is not None


def code_blocks(text: str) -> tuple[list[CodeBlock], bool]:
    """The code blocks of a text, and whether anything stands outside of them.

    Raises:
        ConfigError: above ``MAX_BLOCKS`` blocks.

    >>> code_blocks("Run:\\n```bash\\nvllm serve m\\n```")
    ([CodeBlock(suffix='.sh', body='vllm serve m')], True)
    """
    blocks: list[CodeBlock] = []
    outside = False
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        if len(blocks) > MAX_BLOCKS:
            raise ConfigError(
                "text", f"over {MAX_BLOCKS:,} code blocks", "are more than is read", "give the launch alone"
            )
        line = lines[place]
        place += 1
        fence, directive = _FENCE.match(line), _DIRECTIVE.match(line)
        body: list[str] = []
        if fence is not None:
            mark = fence.group(1)
            while place < len(lines) and not lines[place].strip(" >\t").startswith(mark):
                body.append(lines[place])
                place += 1
            place += 1
            blocks.append(CodeBlock(_suffix(fence.group(2)), dedent("\n".join(body))))
        elif directive is not None:
            depth = len(directive.group(1))
            while place < len(lines) and (
                not lines[place].strip() or len(lines[place]) - len(lines[place].lstrip()) > depth
            ):
                body.append(lines[place])
                place += 1
            blocks.append(CodeBlock(_suffix(directive.group(2)), dedent("\n".join(body)).strip()))
            outside = True
        else:
            outside = outside or bool(line.strip())
    return blocks, outside


def _suffix(kind: str) -> str:
    word = kind.lower()
    return ".sh" if word in _SHELL else _CONFIG.get(word, "")
