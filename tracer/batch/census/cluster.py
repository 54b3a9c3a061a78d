"""The same census on a Dask cluster: the same blocks, the same kernel, the same integers.

Workers read the picks themselves, so every worker must see the files under the same path. Counts are
integers and are added as they come in; a task lost with its worker is run again elsewhere by the scheduler.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.census.counts import Counts
from tracer.batch.census.take import finish, need_numba, partial_note, plan_census, slots_of
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.census.homes import TokenHomes
    from tracer.batch.census.result import Census
    from tracer.batch.census.run import CensusPlan, PickBlock, Progress
    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

TASKS_PER_THREAD = 8
MAX_BLOCKS_PER_TASK = 64
"""A tenth of a second's work: more, and a lost worker costs more; fewer, and the scheduler is the slowest."""
SMALL_WALK_BYTES = 1 << 16
CONNECT_SECONDS = 20


def cluster_census(
    scenario: Scenario,
    picks: PickSource,
    scheduler: Any,
    *,
    homes: TokenHomes | None = None,
    by_layer: bool = False,
    check_repeats: bool = False,
    progress: Progress | None = None,
    partial: bool = False,
) -> Census:
    """As :func:`tracer.batch.census.take.take_census`, counted by a cluster's workers.

    ``scheduler`` is the address of a Dask scheduler, or a ``distributed.Client``. With ``partial`` an
    interrupt ends the count at once: tasks that are not finished are given up.

    Raises:
        ConfigError: when dask is not installed, nobody answers, or as ``take_census``.
    """
    need_numba()
    walk, layers, notes = plan_census(scenario, picks, homes, check_repeats=check_repeats)
    slots = slots_of(walk, layers, by_layer=by_layer)
    totals = [Counts.zeros(walk.layout, walk.tables[walk.key_of[group[0]]].slots) for group in slots]
    blocks = walk.blocks(layers)
    done = 0
    with _connected(scheduler) as client, closing(_results(client, walk, blocks, slots)) as results:
        try:
            for slot, counts, counted in results:
                totals[slot].add(counts)
                done += counted
                if progress is not None:
                    progress(done, len(blocks))
        except KeyboardInterrupt:
            if not partial:
                raise
    return finish(walk, slots, totals, (*partial_note(done, len(blocks)), *notes))


@contextmanager
def _connected(scheduler: Any) -> Iterator[Any]:
    """A client: the one that is given, or one of our own for as long as it is needed."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(
            "--scheduler", "dask", "is not installed", "pip install 'tokentrip[census,cluster]'"
        ) from error
    if isinstance(scheduler, Client):
        yield scheduler
        return
    try:
        client = Client(  # type: ignore[no-untyped-call]
            scheduler, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            "--scheduler", str(scheduler), f"does not answer: {error}", "start one: dask scheduler"
        ) from error
    with client:
        yield client


def _results(
    client: Any, walk: CensusPlan, blocks: list[PickBlock], slots: list[tuple[int, ...]]
) -> Generator[tuple[int, Counts, int]]:
    """(slot, counts, blocks) of each task, in the order they finish; a finished task is forgotten at once."""
    from distributed import as_completed

    where = {layer: slot for slot, group in enumerate(slots) for layer in group}
    shared = _shared(client, walk)
    size = len(blocks) // (TASKS_PER_THREAD * max(1, sum(client.nthreads().values())))
    size = min(max(1, size), MAX_BLOCKS_PER_TASK)
    parts: list[list[PickBlock]] = []
    for slot in range(len(slots)):
        own = [block for block in blocks if where[block.layer] == slot]
        parts += [own[start : start + size] for start in range(0, len(own), size)]
    # All in one message: a call a task costs the scheduler more than the counting does.
    futures = client.map(count_some, [shared] * len(parts), parts, pure=False, retries=3)
    tasks = dict(zip(futures, parts, strict=True))
    del futures
    try:
        # In the loop of this client: by default it would be that of whichever client was made last.
        for future in as_completed(tasks, loop=client.loop):  # type: ignore[no-untyped-call]
            counts = future.result()
            part = tasks.pop(future)
            future.release()
            yield where[part[0].layer], counts, len(part)
    finally:
        client.cancel(list(tasks))


def _shared(client: Any, walk: CensusPlan) -> Any:
    """The walk as an argument of tasks: a small one goes along with each.

    A big one, with a home for every token, is a task's result: not scattered data, so that what a lost
    worker held is made again.
    """
    if len(pickle.dumps(walk)) <= SMALL_WALK_BYTES:
        return walk
    return client.submit(keep, walk, pure=False, retries=3)


def keep(walk: CensusPlan) -> CensusPlan:
    """The walk itself, as the result of a task."""
    return walk


def count_some(walk: CensusPlan, blocks: list[PickBlock]) -> Counts:
    """Counts of some blocks that share a slot; runs on a worker, in one thread."""
    tables = walk.tables[walk.key_of[blocks[0].layer]]
    counts = Counts.zeros(walk.layout, tables.slots)
    for block in blocks:
        walk.count(block, counts)
    return counts


def same(first: Census, second: Census) -> bool:
    """Whether two censuses hold the same integers throughout."""
    names = ("copies", "sent", "returned", "ib_copies", "load_by_expert", "gpu_load", "relayed")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)
