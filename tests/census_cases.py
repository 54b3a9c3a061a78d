"""Small batches that reach what the census branches on, each with how it is counted.

The tests count them with the compiled kernels; the mutation check counts them uncompiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from plain_census import Batch, Plain, assert_census, plain_census

from tracer.scenario.scenario import Scenario

Tables = dict[str, Any]
PIECES = {"BLOCK_PICKS": 6, "THREADED_PICKS": 1}
#: Replicas that leave 1, 2 and 3 owners to choose from.
REPLICAS = [*range(12), 0, 0, 5, 5, 11, 3, 0, 7, 8, 9, 1, 2]
#: Experts 0 to 7 have so many replicas: the least common multiple is 9,699,690.
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


def prime_replicas() -> Tables:
    """A hundred GPUs, each a node: an expert's replicas are tied for every source that holds none of them.

    Tables for each position modulo the common multiple would take 20 TB.
    """
    slots = [expert for expert, count in enumerate(PRIMES) for _ in range(count)]
    slots += [*range(len(PRIMES), 12)] + [11] * (100 - len(slots) - 4)
    return tables(
        {"dp": 100, "ep": 100},
        placement={"kind": "table", "slots": slots},
        cluster={"gpus_per_node": 1},
        token={"prompt": 1 << 12},
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A batch, what a census is asked besides, and which constants of ``tracer.batch.census.run`` differ."""

    name: str
    tables: Tables
    tokens: int = 8
    blank: str = ""
    replicas: tuple[int, ...] = ()
    asked: Tables = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    dtype: type = np.int64

    def batch(self) -> Batch:
        """Tokens of all replicas or some, in no order, with distinct picks; ``blank`` ones are -1."""
        scenario = Scenario.from_dict(self.tables)
        model, rng = scenario.model, np.random.default_rng(len(self.name))
        among = self.replicas or range(scenario.mesh.dp)
        replicas = rng.choice(among, self.tokens).tolist()
        positions = rng.integers(0, scenario.token.prompt, self.tokens).tolist()
        scores = rng.random((model.moe_layers, self.tokens, model.experts or 0))
        picks = scores.argsort(-1)[:, :, : model.top_k].astype(self.dtype)
        if self.blank == "rows":
            picks[:, ::3] = -1
        elif self.blank == "entries":
            picks[:, ::2, 0] = -1
        return Batch(scenario, tuple(zip(replicas, positions, strict=True)), picks)


def check(case: Case, batch: Batch, plain: dict[int, Plain]) -> None:
    """Fail where the census of a case and the plain sums part, in all layers or in one counted apart."""
    with ExitStack() as changed:
        for name, value in case.constants.items():
            changed.enter_context(mock.patch(f"tracer.batch.census.run.{name}", value))
        census = batch.counted(**case.asked)
    assert census.layers == tuple(plain)
    assert (census.tokens, census.notes) == (case.tokens, ())
    assert census.top_k == batch.picks.shape[2] + len(batch.scenario.always_picked)
    assert_census(census, plain)
    if case.asked.get("by_layer"):
        for layer in plain:
            assert_census(census.only(layer), {layer: plain[layer]})


def tables(mesh: Tables, model: Tables | None = None, **parts: Tables) -> Tables:
    """A scenario of two layers, 12 experts and top-3, 4 GPUs per node, unless said otherwise."""
    base = {"layers": 2, "hidden": 16, "heads": 4, "head_dim": 4, "vocab": 8, "dense_hidden": 8}
    whole = base | {"experts": 12, "top_k": 3, "expert_hidden": 8} | (model or {})
    return {"model": whole, "mesh": mesh, "cluster": {"gpus_per_node": 4}, "token": {"prompt": 16}} | parts


def cases() -> Iterator[Case]:
    """Every branch of the census at least once."""
    yield from _routed()
    yield from _not_routed()
    yield from _placed()
    yield from _kernels()


def _routed() -> Iterator[Case]:
    yield Case("relays", tables({"dp": 12, "ep": 12}), tokens=16)
    yield Case("two groups in two stages", tables({"dp": 8, "ep": 4, "pp": 2, "order": "tp-cp-pp-dp"}))
    yield Case("no relay", tables({"dp": 6, "ep": 6}, cluster={"gpus_per_node": 4}), blank="rows")
    yield Case("entries left out", tables({"dp": 4, "ep": 4}, cluster={"gpus_per_node": 2}), blank="entries")
    low = {"dp": 6, "ep": 6, "dispatch": "low_latency"}
    yield Case("low latency", tables(low), asked={"by_layer": True}, blank="rows")
    yield Case("sliced experts", tables({"tp": 2, "dp": 4, "etp": 2, "ep": 4}))
    yield Case("without SP", tables({"tp": 2, "dp": 3, "ep": 6, "sp": "off"}), blank="rows")
    yield Case("split before", tables({"tp": 2, "cp": 2, "dp": 2, "ep": 4, "sp": "before_dispatch"}))
    yield Case("a group of one", tables({"dp": 3}, {"dense_layers": 1}))


def _not_routed() -> Iterator[Case]:
    for contract in ("ag_rs", "dwdp"):
        for sp in ("megatron", "off"):
            mesh = {"tp": 2, "dp": 3, "ep": 3, "pp": 2, "contract": contract, "sp": sp}
            nodes = {"gpus_per_node": 3 if contract == "dwdp" else 4}
            yield Case(f"{contract} {sp}", tables(mesh, {"layers": 4}, cluster=nodes), blank="rows")
        left = tables({"dp": 4, "ep": 4, "contract": contract}, cluster=nodes)
        yield Case(f"{contract} with entries left out", left, blank="entries")
        yield Case(f"{contract} alone", tables({"dp": 2, "contract": contract}))
        yield Case(f"{contract} by two", tables({"dp": 2, "ep": 2, "contract": contract}))
        yield Case(f"{contract} sliced", tables({"dp": 4, "ep": 2, "etp": 2, "contract": contract}))
    every = {"dp": 3, "ep": 3, "contract": "ag_rs"}
    yield Case("one token", tables(every, {"layers": 1}), tokens=1)
    yield Case("one pick", tables(every, {"top_k": 1}))
    yield Case("expert 0 or none", tables(every, {"top_k": 1, "experts": 3}), tokens=16, blank="rows")
    for sp in ("megatron", "off", "before_dispatch"):
        yield Case(f"tp {sp}", tables({"tp": 2, "dp": 4, "contract": "tp", "sp": sp}), blank="rows")
        ring = {"tp": 4, "contract": "tp", "sp": sp, "tp_algo": "ring"}
        yield Case(f"tp {sp} in a ring", tables(ring))
    yield Case("tp with entries left out", tables({"tp": 2, "dp": 2, "contract": "tp"}), blank="entries")
    yield Case("tp alone", tables({"dp": 2, "contract": "tp"}))


def _placed() -> Iterator[Case]:
    mesh = {"dp": 6, "ep": 6}
    yield Case("round robin", tables(mesh, placement={"kind": "round_robin"}))
    replicas = {"kind": "table", "slots": REPLICAS}
    nodes = {"gpus_per_node": 2}
    yield Case("replicas", tables(mesh, placement=replicas, cluster=nodes), tokens=24)
    gathered = tables(mesh | {"contract": "ag_rs"}, placement=replicas)
    single: Tables = {"BLOCK_PICKS": 1}
    yield Case("replicas, a token a block", gathered, tokens=18, blank="rows", constants=single)
    pulled = mesh | {"contract": "dwdp"}
    yield Case("replicas pulled", tables(pulled, placement=replicas, cluster={"gpus_per_node": 6}))
    again = replicas | {"slots_by_layer": {"2": [*range(11, -1, -1), *range(12)]}}
    yield Case("a table of its own", tables(mesh, placement=again, cluster=nodes), asked={"by_layer": True})
    yield Case("replica counts that are primes", prime_replicas(), tokens=120)
    shared = {"shared_experts": 2, "shared_hidden": 16, "experts": 10}
    yield Case("shared, routed", tables(mesh | {"shared_routed": True}, shared), blank="rows")
    dense = {"layers": 5, "dense_layers": [2]}
    cut = {"dp": 4, "ep": 4, "pp": 2, "stage_layers": [1, 4]}
    yield Case("dense inside", tables(cut, dense), asked={"by_layer": True, "check_repeats": True})


def _kernels() -> Iterator[Case]:
    one = {"layers": 1, "experts": 68, "top_k": 5}
    group = {"dp": 68, "ep": 68}
    ends = {"tokens": 40, "replicas": (0, 1, 66, 67)}
    yield Case("lanes wider than a word", tables(group, one, cluster={"gpus_per_node": 66}), **ends)
    two = tables(group, one, cluster={"gpus_per_node": 64})
    yield Case("a lane of a word", two, tokens=40, replicas=(0, 1, 64, 65))
    twice = {"kind": "table", "slots": [*range(48), *range(47, -1, -1)]}
    many = tables({"dp": 96, "ep": 96}, one | {"experts": 48}, placement=twice, cluster={"gpus_per_node": 8})
    yield Case("replicas in two words", many, tokens=20)
    yield Case("every GPU an island", tables(group, one, cluster={"gpus_per_node": 1}), tokens=3)
    long = {"layers": 1, "experts": 8, "top_k": 2}
    yield Case("runs of several chunks", tables({"dp": 2, "ep": 2}, long), tokens=2_200, blank="entries")
    eight = {"experts": 16, "top_k": 8}
    own: Tables = {"constants": {"SMALL_BATCH": 0}, "dtype": np.int16}
    yield Case("its own k", tables({"dp": 8, "ep": 8}, eight), **own)
    nine = tables(group, one | {"top_k": 8}, cluster={"gpus_per_node": 8})
    yield Case("its own k in two words", nine, **own)
    pieces = tables({"dp": 6, "ep": 6}, placement={"kind": "table", "slots": REPLICAS})
    yield Case("pieces on threads", pieces, tokens=25, constants=PIECES, asked={"threads": 3})


def told() -> list[tuple[Case, Batch, dict[int, Plain]]]:
    """Every case with its batch and the plain sums."""
    found = []
    for case in cases():
        batch = case.batch()
        found.append((case, batch, plain_census(batch)))
    return found
