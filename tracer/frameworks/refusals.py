"""A framework's refusal as an error with a flag that works: every value offered has been tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tracer.errors import MAX_SIZE, ConfigError, divisors
from tracer.frameworks.flags import Kind
from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Framework, Request

OFFERED = 4
Attempt = Callable[["Request"], object]


def refused(refusal: Refusal, request: Request, framework: Framework, attempt: Attempt) -> ConfigError:
    """The error for a refusal.

    For each setting of ``refusal.mend`` other values are tried through ``attempt``; the first setting
    with values that pass makes the fix.
    """
    name = request.settings.name(refusal.dest)
    got = request.gpus if refusal.dest == "gpus" else request.settings.get(refusal.dest)
    rule = f"is refused by {framework.title}: {refusal.rule}"
    for dest in refusal.mend:
        works = _working_values(dest, request, attempt)
        if works:
            return ConfigError(name, got, rule, _offer(request.settings.name(dest), works))
    return ConfigError(name, got, rule, refusal.otherwise)


def _offer(name: str, works: list[object]) -> str:
    first, *others = works
    if first is False:
        return f"drop {name}"
    if first is True:
        return f"try {name}"
    more = f" (or {', '.join(map(str, others))})" if others else ""
    return f"try {name} {first}{more}"


def _working_values(dest: str, request: Request, attempt: Attempt) -> list[object]:
    """Up to ``OFFERED`` values of a setting that pass, the closest to the given one first."""
    works: list[object] = []
    for value in _candidates(dest, request):
        try:
            attempt(request.changed(dest, value))
        except (Refusal, ConfigError):
            continue
        works.append(value)
        if len(works) == OFFERED:
            break
    if all(isinstance(value, int) and not isinstance(value, bool) for value in works):
        return [*works[:1], *sorted(works[1:], key=lambda value: int(str(value)))]
    return works[:1]


def _candidates(dest: str, request: Request) -> Iterator[object]:
    if dest == "gpus":
        yield from _gpu_counts(request)
        return
    flag = request.settings.flags[dest]
    if flag.kind in (Kind.SWITCH, Kind.ON_OFF):
        yield not request.settings.on(dest)
    elif flag.kind is Kind.INT:
        yield from _sizes(request, request.settings.maybe(dest))
    elif flag.choices:
        yield from flag.choices


def _sizes(request: Request, given: int | None) -> list[int]:
    """Divisors of the number of GPUs and powers of two, the closest to ``given`` first."""
    close = given if given is not None and given > 0 else 1
    pool = {2**power for power in range(15)} | set(divisors(request.gpus or 1, limit=64))
    if request.experts:
        pool |= set(divisors(request.experts, limit=64))
    return sorted(pool - {given}, key=lambda size: (abs(size - close), size))


def _gpu_counts(request: Request) -> list[int]:
    """Counts of GPUs to try, the closest to the given one first."""
    product = 1
    for dest, flag in request.settings.flags.items():
        value = request.settings.maybe(dest)
        if flag.kind is Kind.INT and value and ("size" in dest or "degree" in dest):
            product *= value
    pool = {*range(1, 65), *(2**power for power in range(7, 21)), product, 2 * product} - {request.gpus}
    close = request.gpus or 1
    return sorted((count for count in pool if 0 < count <= MAX_SIZE), key=lambda count: abs(count - close))
