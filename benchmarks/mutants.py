"""Mutation check of the engine's core: change one operator or number at a time, and see a test fail.

``python -m benchmarks.mutants`` changes functions of the mesh, the hops and the census in a forked process
each, so that nothing is imported twice, and runs them against the oracle; what survives meets the test files
named below. A survivor is expected only when ``tests/data/mutants.json`` gives a reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchmarks.mutant_battery import Battery

ROOT = Path(__file__).parents[1]
REASONS = ROOT / "tests" / "data" / "mutants.json"
#: Left out: the tables that a census prints, and Dask's workers, which are processes of their own.
LEFT_OUT = {"tracer/batch/census/report.py", "tracer/batch/census/cluster.py"}
#: What the oracle's survivors meet: quick tests that draw nothing, for drawn scenarios were the oracle's.
#: The census's kernels run uncompiled here; tests of large batches would take minutes so.
TESTS: dict[str, tuple[str, ...]] = {
    "tracer/mesh/mesh.py": (
        "test_mesh_groups.py",
        "test_errors.py",
        "test_cluster.py",
        "test_notebook.py::test_a_huge_mesh_shows_without_being_listed",
    ),
    "tracer/trip/hops": ("test_routes.py", "test_reference_trip.py", "test_trip_log.py", "test_errors.py"),
    "tracer/batch/census": ("test_census_limits.py", "test_census_kernels.py"),
}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub,
    ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
CPU_SECONDS = 90
"""Of the tests; the battery gets a few times what it takes without any mutant."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where, in which function, and what became of it."""

    file: str
    line: int
    function: str
    before: str
    after: str
    text: str
    code: CodeType

    @property
    def key(self) -> str:
        """How the file of reasons names it: by the line's text, for line numbers move."""
        return f"{self.file}:{self.function}: {self.before} -> {self.after} in {self.text}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every change of a file, one at a time; later ones that read alike in a function get a number."""
    name, source = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
    count = len(list(_places(ast.parse(source))))
    lines, alike = source.splitlines(), Counter[tuple[str, str, str]]()
    for index in range(count):
        tree = ast.parse(source)
        function, node = list(_places(tree))[index]
        before = ast.unparse(node)
        _change(node)
        code = compile(ast.fix_missing_locations(tree), str(file), "exec")
        text = lines[node.lineno - 1].strip()
        alike[function, before, text] += 1
        if (number := alike[function, before, text]) > 1:
            text += f" (number {number})"
        yield Mutant(name, node.lineno, function, before, ast.unparse(node), text, code)


def _places(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.expr]]:
    """(function, expression) of all that is changed: not messages, annotations, or what runs at import."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.arguments):
            continue
        name = inside
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{inside}.{child.name}".lstrip(".")
        if inside and isinstance(tree, ast.FunctionDef | ast.expr | ast.stmt) and _changes(child):
            yield inside, child  # type: ignore[misc]
        yield from _places(child, name)


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and type(node.ops[0]) in SWAPS
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in SWAPS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _change(node: ast.expr) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [SWAPS[type(node.ops[0])]()]  # type: ignore[list-item]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.operand, ast.Constant) else ast.Not()
        node.operand = ast.UnaryOp(ast.Not(), node.operand)


def install(mutant: Mutant) -> None:
    """Put the changed code into the functions that live in this process."""
    module = sys.modules[mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")]
    changed = {code.co_qualname: code for code in _codes(mutant.code)}
    for function in _functions(module):
        code = changed.get(function.__code__.co_qualname)
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    owners = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    for owner in owners:
        if owner is not module and owner.__module__ != module.__name__:  # type: ignore[union-attr]
            continue
        for value in list(vars(owner).values()):
            found = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
            found = getattr(found, "func", found)
            if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                yield found


def survives(mutant: Mutant, check: Callable[[], object], seconds: int = CPU_SECONDS) -> bool:
    """Whether a check passes in a process where the mutant lives."""

    def changed() -> None:
        install(mutant)
        check()

    return passes(changed, seconds)


def passes(check: Callable[[], object], seconds: int = CPU_SECONDS) -> bool:
    """Whether a check passes in a process of its own, in so many seconds of its CPU."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            check()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def part_of(file: str) -> str:
    """The part of the engine a file is of: a key of ``TESTS``."""
    return next(part for part in TESTS if file.startswith(part))


def run_tests(part: str) -> None:
    """The test files of a part of the engine; raises at the first failure."""
    names = [str(ROOT / "tests" / name) for name in TESTS[part]]
    with contextlib.redirect_stdout(io.StringIO()):
        if pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=ignore", *names]) != 0:
            raise AssertionError("a test failed")


def chosen_mutants(only: str, sample: int | None) -> list[Mutant]:
    """The mutants of the files whose path has a text, or a sample of them."""
    files = [
        file
        for pattern in ("tracer/mesh/mesh.py", "tracer/trip/hops/*.py", "tracer/batch/census/*.py")
        for file in sorted(ROOT.glob(pattern))
        if (name := file.relative_to(ROOT).as_posix()) not in LEFT_OUT and only in name
    ]
    if not files:
        raise SystemExit(f"no file that is changed has {only!r} in its path")
    made = [mutant for file in files for mutant in mutants_of(file)]
    return made if sample is None else random.Random(1).sample(made, min(sample, len(made)))


def left_by(battery: Battery, made: list[Mutant]) -> list[Mutant]:
    """The mutants that the battery does not tell from the engine."""
    limits = {}
    for part in {part_of(mutant.file) for mutant in made}:
        battery.check(part)  # imports what it needs
        started = time.process_time()
        battery.check(part)
        limits[part] = 5 + int(5 * (time.process_time() - started))
        if not passes(lambda part=part: run_tests(part)):
            raise SystemExit(f"the tests of {part} fail without any mutant")
    found = []
    for mutant in made:
        part = part_of(mutant.file)
        if survives(mutant, lambda part=part: battery.check(part), limits[part]):
            found.append(mutant)
    return found


def main() -> None:
    """Run all mutants, or a sample; print those that survive without a reason, and needless reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="So many, drawn evenly, instead of all.")
    parser.add_argument("--only", default="", help="Files whose path has this text.")
    chosen = parser.parse_args()
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path[:0] = [str(ROOT / "tests")]
    from benchmarks.mutant_battery import Battery

    made, started = chosen_mutants(chosen.only, chosen.sample), time.monotonic()
    first = left_by(Battery.drawn(), made)
    spent = time.monotonic() - started
    print(f"{len(made)} mutants, {len(first)} left by the battery in {spent:.0f} s", flush=True)
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    left = {each.key for each in first if survives(each, lambda each=each: run_tests(part_of(each.file)))}
    unexplained = left - reasons.keys()
    needless = {each.key for each in made} & reasons.keys() - left
    for words, keys in (("no test sees", unexplained), ("seen in spite of its reason:", needless)):
        for key in sorted(keys):
            print(words, key)
    print(f"{len(left)} survive the tests, {len(left) - len(unexplained)} of them with a reason")
    sys.exit(1 if unexplained or needless else 0)


if __name__ == "__main__":
    main()
