"""Write JSON schemas of commands whose output has none, from outputs of many scenarios.

Usage: ``python scripts/infer_schemas.py``. A key that every output has is required; one that some lack
may be left out; an object whose keys are data (ranks, layers) takes any key. ``tests/test_schemas.py`` holds
other scenarios to what is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from app.cli import tokentrip

SCHEMAS = Path(__file__).parents[1] / "tracer" / "data" / "schemas"
PRESETS = (
    "six-cuts", "six-cuts-decode", "deepseek-v3-prefill-ep32", "deepseek-v3-decode-ep144",
    "gpt-oss-120b-dwdp4",
    "mixtral-8x7b-ep8", "mixtral-8x7b-tp8", "llama-3.1-405b", "kimi-k2", "qwen3-235b",
)  # fmt: skip
TITLES = {
    "advise": "Which cuts fit",
    "causal": "Causal work by rule",
    "census": "A batch counted",
    "compare": "Two scenarios side by side",
    "diff": "Two launch lines' groups",
    "eplb": "Replicated experts before and after",
    "flags": "A scenario as launch flags",
    "from": "What a launch line makes",
    "ledger": "Published claims and ours",
    "presets": "The shipped scenarios",
    "replay": "A replay on arrays",
    "time": "Times of a pass",
}
LINES = (
    *(f"{command} {preset}" for command in ("advise", "causal", "time") for preset in PRESETS),
    "time six-cuts --published",
    "time six-cuts --rates peak",
    "time six-cuts --phase decode",
    "census six-cuts --tokens 500",
    "census six-cuts --tokens 500 --by-layer",
    "census deepseek-v3-prefill-ep32 --tokens 512",
    "census mixtral-8x7b-ep8 --tokens 64 --by-layer",
    "census gpt-oss-120b-dwdp4 --tokens 64",
    "compare six-cuts six-cuts-pp-inside-dp",
    "compare six-cuts hybrid-tp4-ep8",
    "compare deepseek-v3-ep64 kimi-k2",
    "compare gpt-oss-120b-dep4 gpt-oss-120b-dwdp4",
    "compare mixtral-8x7b-ep8 qwen3-235b",
    'diff "vllm -tp 4 -dp 2 --enable-expert-parallel" "sglang --tp 8 --attn-dp-size 2 --ep 8"',
    'diff "vllm -tp 8" "vllm -tp 8"',
    'diff "vllm -tp 8" "vllm -tp 4 -pp 2"',
    "eplb six-cuts --tokens 500",
    "eplb deepseek-v3-ep64 --tokens 2048",
    "eplb mixtral-8x7b-ep8 --tokens 512",
    "flags mixtral-8x7b-ep8 --for vllm",
    "flags mixtral-8x7b-tp8 --for megatron",
    "flags mixtral-8x7b-ep8 --for sglang",
    "from --json vllm -- -tp 8",
    "from --json -- vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -dp 2 --enable-expert-parallel",
    "from --json megatron --gpus 16 -- --tensor-model-parallel-size 2",
    "from --json -- sglang --tp 8 --attn-dp-size 2 --ep 8",
    "from --json -- vllm serve x -tp 2 --unknown 3",
    "ledger",
    "presets",
    "replay six-cuts --tiny",
    "replay six-cuts-decode --tiny --phase decode",
    "replay mixtral-8x7b-ep8 --tiny",
)


def printed(line: str) -> Any:
    """The JSON that a command line prints."""
    import shlex

    words = shlex.split(line)
    if "--json" not in words:
        words.append("--json")
    done = CliRunner().invoke(tokentrip, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        print(f"left out: {line}: {done.exception}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def merged(values: list[Any]) -> dict[str, Any]:
    """A schema that all the values follow."""
    kinds = {_kind(value) for value in values}
    tables = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    if {"integer", "number"} <= kinds:
        kinds.discard("integer")
    if kinds <= {"null"}:
        return {}  # never seen with a value: it may have any
    found: dict[str, Any] = {"type": sorted(kinds) if len(kinds) > 1 else next(iter(kinds))}
    if tables:
        keys = list(dict.fromkeys(key for table in tables for key in table))
        if _data(keys, tables):
            inside = [item for table in tables for item in table.values()]
            found["additionalProperties"] = merged(inside) if inside else True
        else:
            found["required"] = [key for key in keys if all(key in table for table in tables)]
            found["additionalProperties"] = False
            found["properties"] = {key: merged([t[key] for t in tables if key in t]) for key in keys}
    items = [item for each in lists for item in each]
    if items:
        found["items"] = merged(items)
    return found


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else names[type(value)]


def _data(keys: list[str], tables: list[dict[str, Any]]) -> bool:
    """Whether the keys of an object are data: numbers, words with spaces, or different every time."""
    if not keys:
        return True
    odd = sum(not key.isidentifier() for key in keys)
    shared = sum(all(key in table for table in tables) for key in keys)
    return odd > len(keys) / 4 or (len(tables) > 3 and shared == 0 and len(keys) > 8)


def main() -> None:
    """Write every schema."""
    for name, title in TITLES.items():
        lines = [line for line in LINES if line.split()[0] == name]
        values = [value for line in lines if (value := printed(line)) is not None]
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:tokentrip:{name}:1",
            "title": f"{title}, as `tokentrip {name} --json` prints it",
            **merged(values),
        }
        schema["properties"]["schema"] = {"const": 1}
        path = SCHEMAS / f"{name}.schema.json"
        path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(values)} outputs")


if __name__ == "__main__":
    main()
