"""Read the recipes of Megatron-Bridge into ``tracer/data/recipes.json``: their sizes and models, no code run.

Run it on an unpacked wheel: ``python scripts/read_recipes.py FOLDER VERSION``. A recipe is a function that
ends in ``_config`` and assigns literals to ``cfg.model``; one that assigns a size in a branch, or by calling
another function, is left out, for what it decides cannot be read.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tracer" / "data" / "recipes.json"
SIZES = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "expert_tensor_parallel_size", "virtual_pipeline_model_parallel_size",
    "sequence_parallel", "pipeline_model_parallel_layout", "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split", "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage", "moe_token_dispatcher_type", "cp_comm_type",
)  # fmt: skip


def main(folder: str, version: str) -> None:
    """Write the table."""
    recipes = {}
    for path in sorted(Path(folder).rglob("megatron/bridge/recipes/**/*.py")):
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.FunctionDef) and each.name.endswith("_config"):
                found = recipe(each)
                if found is not None:
                    recipes[each.name] = found
    source = f"megatron-bridge {version} (PyPI), megatron/bridge/recipes"
    table = {"source": source, "licence": "Apache-2.0", "version": version, "recipes": recipes}
    TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recipes)} recipes")


def recipe(function: ast.FunctionDef) -> dict[str, Any] | None:
    """The literals that a recipe assigns to sizes, and its model; None where a branch or a call decides."""
    found: dict[str, Any] = {}
    for statement in function.body:
        if isinstance(statement, ast.Assign):
            key = model_key(statement.targets[0])
            if key == "":
                found |= {"model": name} if (name := hub_name(statement.value)) else {}
            elif key in SIZES:
                try:
                    value = ast.literal_eval(statement.value)
                except ValueError:
                    return None
                if value is not None:
                    found[key] = value
        elif any(sets_size(each) for each in ast.walk(statement)):
            return None
    return found if "tensor_model_parallel_size" in found else None


def model_key(target: ast.expr) -> str | None:
    """``X`` of ``cfg.model.X``, empty for ``cfg.model`` itself, None for anything else."""
    text = ast.unparse(target)
    return text.removeprefix("cfg.model").removeprefix(".") if text.startswith("cfg.model") else None


def hub_name(value: ast.expr) -> str:
    """The name in ``AutoBridge.from_hf_pretrained("...")``."""
    for each in ast.walk(value):
        if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("from_hf_pretrained"):
            first = each.args[0] if each.args else None
            return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    return ""


def sets_size(node: ast.AST) -> bool:
    """Whether a nested statement assigns a size, or a call is given the model to lay out."""
    if isinstance(node, ast.Assign):
        return model_key(node.targets[0]) in SIZES
    return isinstance(node, ast.Call) and "pipeline_model_parallel_layout" in ast.unparse(node.func)


if __name__ == "__main__":
    main(*sys.argv[1:])
