"""Read the pre-training recipes of NeMo 2 into ``tracer/data/nemo_recipes.json``: their sizes, no code run.

Run it on an unpacked wheel: ``python scripts/read_nemo_recipes.py FOLDER VERSION``. A recipe is a function
``pretrain_recipe`` of a module; its sizes are those that reach ``nl.MegatronStrategy``, by the defaults of
the functions between, and what it assigns to ``recipe.trainer.strategy`` afterwards outside of a branch.
"""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tracer" / "data" / "nemo_recipes.json"
SIZES = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "expert_tensor_parallel_size", "virtual_pipeline_model_parallel_size",
    "sequence_parallel", "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split",
    "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
)  # fmt: skip
COUNTS = {"num_nodes": "num_nodes", "devices": "num_gpus_per_node"}
STRATEGY = "recipe.trainer.strategy."


@dataclass(frozen=True)
class Parameter:
    """A value that a parameter of the recipe gives, and its default."""

    name: str
    default: Any


@dataclass
class Module:
    """One file: its functions, the names it imports from other recipes, and its constants."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)


def main(folder: str, version: str) -> None:
    """Write the table."""
    modules = {path.stem: module_of(path) for path in sorted(Path(folder).rglob("llm/recipes/*.py"))}
    recipes = {}
    for module in modules.values():
        found = recipe_of(module, modules)
        if found is not None:
            recipes[module.constants["NAME"]] = found
    source = f"nemo-toolkit {version} (PyPI), nemo/collections/llm/recipes"
    table = {"source": source, "licence": "Apache-2.0", "version": version, "recipes": recipes}
    TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recipes)} recipes")


def module_of(path: Path) -> Module:
    """What a file defines."""
    found = Module()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.functions[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.module and "llm.recipes" in node.module:
            inner = node.module.rpartition("recipes")[2].lstrip(".")
            for alias in node.names:
                found.imports[alias.asname or alias.name] = (inner, alias.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found.constants[ast.unparse(node.targets[0])] = node.value.value
    return found


def recipe_of(module: Module, modules: dict[str, Module]) -> dict[str, Any] | None:
    """The sizes, counts and arguments of a module's recipe; None where its strategy cannot be read."""
    function = module.functions.get("pretrain_recipe")
    if function is None or "NAME" not in module.constants:
        return None
    scope = {name: Parameter(name, default) for name, default in defaults(function, {}).items()}
    call = trainer_call(function)
    values = strategy_of(call, scope, module, modules, 0) if call is not None else None
    if values is None:
        return None
    for statement in function.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).startswith(STRATEGY):
            key = ast.unparse(statement.targets[0]).removeprefix(STRATEGY)
            if key in SIZES:
                values[key] = value_of(statement.value, scope)
    plain = {key: value.default if isinstance(value, Parameter) else value for key, value in values.items()}
    arguments = {value.name: key for key, value in values.items() if isinstance(value, Parameter)}
    if any(value is ... for value in plain.values()):
        return None
    return {
        "sizes": {key: value for key, value in plain.items() if value is not None},
        "arguments": {name: key for name, key in arguments.items() if name != key},
    }


def trainer_call(function: ast.FunctionDef) -> ast.Call | None:
    """The call that makes the trainer: ``trainer=trainer(...)``, or the call that is returned."""
    for node in ast.walk(function):
        if isinstance(node, ast.keyword) and node.arg == "trainer" and isinstance(node.value, ast.Call):
            return node.value
    return None


def defaults(function: ast.FunctionDef, given: dict[str, Any]) -> dict[str, Any]:
    """Every parameter with what is given for it, else its default; ``...`` where neither is a literal."""
    arguments = function.args
    names = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]
    values: dict[str, Any] = dict.fromkeys(names, ...)
    for each, node in zip(reversed(arguments.args), reversed(arguments.defaults), strict=False):
        values[each.arg] = value_of(node, {})
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        values[each.arg] = value_of(default, {}) if default is not None else ...
    return values | given


def value_of(node: ast.expr, scope: dict[str, Any]) -> Any:
    """A literal, or what a name stands for; ``...`` for anything else."""
    if isinstance(node, ast.Name) and node.id in scope:
        return scope[node.id]
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...


def strategy_of(
    call: ast.Call, scope: dict[str, Any], module: Module, modules: dict[str, Module], depth: int
) -> dict[str, Any] | None:
    """The sizes and counts that a call hands to the strategy and the trainer, function by function."""
    target = ast.unparse(call.func)
    head, _, tail = target.partition(".")
    home = module
    if target in module.imports and module.imports[target][0] in modules:
        inner, target = module.imports[target]
        home = modules[inner]
    elif tail and head in module.imports and module.imports[head][1] in modules:
        home, target = modules[module.imports[head][1]], tail
    function = home.functions.get(target)
    if function is None or depth > 4:
        return None
    given = {each.arg: value_of(each.value, scope) for each in call.keywords if each.arg}
    inside = defaults(function, given)
    found: dict[str, Any] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        made = ast.unparse(node.args[0]) if node.args else ""
        keywords = {each.arg: value_of(each.value, inside) for each in node.keywords if each.arg}
        if made == "nl.MegatronStrategy":
            found |= {key: keywords[key] for key in SIZES if key in keywords}
        elif made == "nl.Trainer":
            found |= {ours: keywords[key] for key, ours in COUNTS.items() if key in keywords}
    if "tensor_model_parallel_size" in found:
        return found
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            return strategy_of(node.value, inside, home, modules, depth + 1)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
