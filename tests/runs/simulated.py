"""Hung jobs made here: every rank runs its program until a fault stops the job, and then dumps.

A rank issues operations in the order of its program, a few ahead of what has completed. A collective
completes when all members issued the same one under its number and each has completed what it issued before;
a send and its receive complete together. What is left when nothing moves any more is what a recorder shows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from tracer.mesh.mesh import Mesh

MEGATRON = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "cp": "CONTEXT_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP",
    "dp-cp": "DATA_PARALLEL_GROUP_WITH_CP",
    "tp-pp": "MODEL_PARALLEL_GROUP",
    "tp-cp": "TENSOR_AND_CONTEXT_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
    "etp": "EXPERT_TENSOR_PARALLEL_GROUP",
    "edp": "EXPERT_DATA_PARALLEL_GROUP",
    "etp-ep": "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP",
}
WORDS = {"dp-cp": "dp_cp", "tp-pp": "tp_pp", "tp-cp": "tp_cp", "etp-ep": "ep_tp"}


@dataclass(frozen=True)
class Call:
    """One operation of a rank's program; ``peer`` is a global rank."""

    group: str
    what: str
    given: tuple[int, ...]
    got: tuple[int, ...]
    dtype: str = "BFloat16"
    peer: int | None = None

    @property
    def is_p2p(self) -> bool:
        """Whether it joins two ranks."""
        return self.peer is not None

    @property
    def signature(self) -> tuple[object, ...]:
        """What must agree among members."""
        varies = self.what == "all_to_all"
        return (self.what, self.dtype) if varies else (self.what, self.given, self.got, self.dtype)


@dataclass(frozen=True)
class Job:
    """Sizes, order and the way layers run."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    etp: int = 1
    order: str = "tp-cp-dp-pp"
    chunks: int = 1
    layers: int = 1
    experts: int = 0
    top_k: int = 2
    micro_batches: int = 4
    hidden: int = 64
    rows: int = 8
    sp: bool = True
    training: bool = True
    names: str = "megatron"
    ulysses: bool = False

    @property
    def mesh(self) -> Mesh:
        """The mesh of it."""
        edp = self.tp * self.cp * self.dp // (self.ep * self.etp)
        return Mesh.build(
            self.order, tp=self.tp, cp=self.cp, dp=self.dp, pp=self.pp, ep=self.ep, etp=self.etp, edp=edp
        )

    def families(self) -> list[str]:
        """Groups that are made, in order of creation."""
        if self.names == "megatron":
            return list(MEGATRON)
        found = [axis for axis in ("pp", "dp", "cp", "tp") if getattr(self, axis) > 1]
        if self.experts:
            found += [axis for axis in ("ep", "etp") if getattr(self, axis) > 1]
            found += ["etp-ep"] if self.ep > 1 and self.etp > 1 else []
        return found + (["tp-cp"] if self.tp > 1 and self.cp > 1 and self.experts else [])

    def description(self, family: str) -> str:
        """A group's description in the words of a framework."""
        word = WORDS.get(family, family)
        return {"megatron": MEGATRON.get(family, family), "mesh": f"mesh_{word}", "colon": f"{word}:0",
                "none": "undefined"}[self.names]  # fmt: skip


class Groups:
    """Every rank's groups of a job, with names that count up as they are made."""

    def __init__(self, job: Job) -> None:
        self.job, self.mesh = job, job.mesh
        self.members: dict[str, tuple[int, ...]] = {"0": tuple(range(self.mesh.world_size))}
        self.descriptions = {"0": "default_pg"}
        self._of: dict[tuple[int, str], str] = {}
        for family in job.families():
            for rank in range(self.mesh.world_size):
                if (rank, family) in self._of:
                    continue
                name = str(len(self.members))
                row = tuple(self.mesh.group(rank, family.split("-")))
                self.members[name], self.descriptions[name] = row, job.description(family)
                self._of |= {(each, family): name for each in row}

    def name(self, rank: int, family: str) -> str:
        """The rank's group of a family: where the job does not make it, the one with the same members."""
        if (rank, family) in self._of:
            return self._of[rank, family]
        for axis in family.split("-"):  # a group over two axes, of which one is no axis
            if (rank, axis) in self._of and self.size(rank, axis) == self.size(rank, family):
                return self._of[rank, axis]
        row = tuple(self.mesh.group(rank, family.split("-")))
        return next((name for name, members in self.members.items() if members == row and name != "0"), "0")

    def size(self, rank: int, family: str) -> int:
        """Members of the rank's group of a family."""
        return len(self.mesh.group(rank, family.split("-")))


@dataclass
class Program:
    """The calls of one rank."""

    groups: Groups
    rank: int
    draw: random.Random
    calls: list[Call] = field(default_factory=list)

    def one(self, family: str, what: str, given: tuple[int, ...], got: tuple[int, ...], **more: Any) -> None:
        """Add a collective where its group has several members."""
        if self.groups.size(self.rank, family) > 1:
            self.calls.append(Call(self.groups.name(self.rank, family), what, given, got, **more))

    def gather(self, rows: int, dtype: str = "BFloat16") -> None:
        """Rows gathered over TP."""
        job = self.groups.job
        self.one("tp", "_all_gather_base", (rows, job.hidden), (rows * job.tp, job.hidden), dtype=dtype)

    def total(self, rows: int) -> None:
        """Rows summed over TP, scattered with SP."""
        job = self.groups.job
        whole = (rows * job.tp, job.hidden)
        if job.sp:
            self.one("tp", "_reduce_scatter_base", whole, (rows, job.hidden))
        else:
            self.one("tp", "all_reduce", whole, whole)

    def half(self) -> None:
        """Attention or a dense feed-forward: gather and sum."""
        if self.groups.job.sp:
            self.gather(self.groups.job.rows)
        self.total(self.groups.job.rows)

    def ring(self) -> None:
        """K/V around the CP ring."""
        job = self.groups.job
        members = self.groups.mesh.group(self.rank, "cp")
        if job.ulysses:
            return
        place, shape = members.index(self.rank), (2, job.rows * job.tp, 1, 16)
        for _ in range(len(members) - 1):
            self.pair("cp", "send", members[(place + 1) % len(members)], shape)
            self.pair("cp", "recv", members[place - 1], shape)

    def heads(self, width: int) -> None:
        """Heads scattered over CP, or gathered again."""
        if self.groups.job.ulysses:
            shape = (self.groups.job.rows * self.groups.job.tp, width)
            self.one("cp", "all_to_all", shape, shape)

    def pair(self, family: str, word: str, peer: int, shape: tuple[int, ...]) -> None:
        """A send or a receive."""
        members = self.groups.mesh.group(self.rank, family)
        here, there = members.index(self.rank), members.index(peer)
        arrow = f"{word} {here}{'->' if word == 'send' else '<-'}{there}"
        self.calls.append(Call(self.groups.name(self.rank, family), arrow, shape, shape, peer=peer))

    def experts(self, *, forward: bool) -> None:
        """Counts (forward), dispatch and combine."""
        job = self.groups.job
        sent = (job.rows if job.sp else job.rows * job.tp) * job.top_k
        got = sent if job.etp > 1 else max(1, sent + self.draw.randint(-2, 2))
        if forward:
            self.one("tp-cp", "all_reduce", (job.experts,), (job.experts,), dtype="Long")
            ranks = self.groups.size(self.rank, "etp-ep")
            self.one("etp-ep", "_all_gather_base", (job.experts,), (job.experts * ranks,), dtype="Long")
        self.one("ep", "all_to_all", (sent, job.hidden), (got, job.hidden))
        if forward:
            self.one("ep", "all_to_all", (sent,), (got,))
        self.one("etp", "_all_gather_base", (got, job.hidden), (got * job.etp, job.hidden))
        self.one("etp", "_reduce_scatter_base", (got * job.etp, job.hidden), (got, job.hidden))
        self.one("ep", "all_to_all", (got, job.hidden), (sent, job.hidden))

    def layer(self, *, forward: bool) -> None:
        """One layer; backward gathers once more for each sum."""
        job = self.groups.job
        if forward:
            if job.sp:
                self.gather(job.rows)
            self.heads(3 * job.hidden // job.tp)
            self.ring()
            self.heads(job.hidden // job.tp)
            self.total(job.rows)
            self.experts(forward=True) if job.experts else self.half()
            return
        for half in range(2):
            if half == 0 and job.experts:
                self.experts(forward=False)
                continue
            if job.sp:
                self.gather(job.rows)
                self.gather(job.rows)
            if half == 1:
                self.ring()
            self.total(job.rows)

    def step(self) -> None:
        """One step: all micro-batches forward through each chunk, then backward; then the gradients."""
        job = self.groups.job
        stages = self.groups.mesh.group(self.rank, "pp")
        stage, shape = stages.index(self.rank), (job.rows if job.sp else job.rows * job.tp, 1, job.hidden)
        last = job.pp * job.chunks - 1
        directions = (True, False) if job.training else (True,)
        for forward in directions:
            chunks = range(job.chunks) if forward else reversed(range(job.chunks))
            for chunk in chunks:
                place = chunk * job.pp + stage
                before, after = (place > 0, place < last) if forward else (place < last, place > 0)
                step = 1 if forward else -1
                for _ in range(job.micro_batches):
                    if before and job.pp > 1:
                        self.pair("pp", "recv", stages[(stage - step) % job.pp], shape)
                    for _ in range(job.layers):
                        self.layer(forward=forward)
                    if after and job.pp > 1:
                        self.pair("pp", "send", stages[(stage + step) % job.pp], shape)
        if job.training:
            size = 1000 * self.groups.size(self.rank, "dp-cp")
            self.one("dp-cp", "_reduce_scatter_base", (size,), (1000,), dtype="Float")
            self.one("dp-cp", "_all_gather_base", (1000,), (size,))


@dataclass(frozen=True)
class Fault:
    """What goes wrong on one rank, from one place of its program on."""

    rank: int
    kind: str
    at: float = 0.7

    def apply(self, calls: list[Call]) -> list[Call]:
        """The rank's program with the fault in it."""
        places = [i for i, call in enumerate(calls) if self._fits(calls, i)]
        place = min(places, key=lambda i: abs(i - self.at * len(calls)))
        call = calls[place]
        rest = calls[place + 1 :]
        if self.kind in ("hang", "missing", "silent"):
            return calls[:place]
        if self.kind in ("skip", "no_recv", "no_send"):
            return [*calls[:place], *rest]
        if self.kind == "order":
            return [*calls[:place], rest[0], call, *rest[1:]]
        if self.kind == "size":
            double = tuple(2 * n for n in call.given)
            return [*calls[:place], replace(call, given=double, got=tuple(2 * n for n in call.got)), *rest]
        if self.kind == "dtype":
            return [*calls[:place], replace(call, dtype="Half"), *rest]
        if self.kind == "kind":
            return [*calls[:place], replace(call, what="broadcast"), *rest]
        raise AssertionError(self.kind)

    def _fits(self, calls: list[Call], place: int) -> bool:
        call = calls[place]
        if self.kind in ("no_recv", "no_send"):
            return call.what.startswith(self.kind[3:])
        if self.kind == "skip":
            return not call.is_p2p
        if self.kind == "order":
            follow = calls[place + 1] if place + 1 < len(calls) else call
            same = follow.group == call.group and follow.signature != call.signature
            return same and not call.is_p2p and not follow.is_p2p
        if self.kind in ("size", "dtype", "kind"):
            return not call.is_p2p and call.what != "all_to_all"
        return True


@dataclass
class Rank:
    """Where a rank stands."""

    calls: list[Call]
    window: int
    next: int = 0
    issued: list[tuple[Call, int]] = field(default_factory=list)
    done: list[bool] = field(default_factory=list)
    first_open: int = 0
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def simulate(
    job: Job, fault: Fault | None = None, *, seed: int = 0, steps: int = 2
) -> tuple[Groups, dict[int, Rank]]:
    """Run a job until it ends or hangs."""
    draw = random.Random(seed)
    groups = Groups(job)
    window = draw.randint(1, 12)
    ranks: dict[int, Rank] = {}
    for rank in range(groups.mesh.world_size):
        program = Program(groups, rank, random.Random(seed * 1000 + rank))
        for _ in range(steps):
            program.step()
        calls = program.calls
        if fault is not None and fault.rank == rank:
            calls = fault.apply(calls)
        ranks[rank] = Rank(calls, window)
    _run(groups, ranks)
    return groups, ranks


def _run(groups: Groups, ranks: dict[int, Rank]) -> None:
    at: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    pairs: dict[tuple[str, int, int], list[list[int]]] = defaultdict(lambda: [[], []])
    moved = True
    while moved:
        moved = False
        for rank, each in ranks.items():
            while each.next < len(each.calls) and len(each.issued) - each.first_open < each.window:
                call = each.calls[each.next]
                each.next += 1
                each.counts[call.group] += 1
                number = each.counts[call.group]
                place = len(each.issued)
                each.issued.append((call, number))
                each.done.append(False)
                moved = True
                if call.peer is None:
                    at[call.group, number][rank] = place
                else:
                    sends = call.what.startswith("send")
                    key = (call.group, rank, call.peer) if sends else (call.group, call.peer, rank)
                    pairs[key][not sends].append(place)
        for (name, number), places in list(at.items()):
            if len(places) < len(groups.members[name]):
                continue
            calls = [ranks[rank].issued[place][0] for rank, place in places.items()]
            if len({call.signature for call in calls}) > 1:
                continue
            if all(_is_next(ranks[rank], place) for rank, place in places.items()):
                for rank, place in places.items():
                    ranks[rank].done[place] = True
                del at[name, number]
                moved = True
        for (_, src, dst), (outgoing, incoming) in pairs.items():
            while (
                outgoing
                and incoming
                and _is_next(ranks[dst], incoming[0])
                and _is_next(ranks[src], outgoing[0])
            ):
                ranks[src].done[outgoing.pop(0)] = True
                ranks[dst].done[incoming.pop(0)] = True
                moved = True
        for each in ranks.values():
            while each.first_open < len(each.done) and each.done[each.first_open]:
                each.first_open += 1


def _is_next(rank: Rank, place: int) -> bool:
    """Whether all that a rank issued before is done; sends run beside what follows them."""
    return all(rank.done[i] or rank.issued[i][0].is_p2p for i in range(rank.first_open, place))


def dumps(
    groups: Groups, ranks: dict[int, Rank], *, form: str = "active", ring: int = 200, timed: bool = False
) -> dict[int, dict[str, Any]]:
    """What each rank's recorder writes: all of the last operations (``ring``) or those that are open."""
    return {rank: _dump(groups, rank, each, form, ring, timed) for rank, each in ranks.items()}


def _dump(groups: Groups, rank: int, each: Rank, form: str, ring: int, timed: bool) -> dict[str, Any]:
    own = [name for name, members in groups.members.items() if rank in members]
    numbers = {name: place for place, name in enumerate(own)}
    status = {}
    p2p: dict[str, int] = defaultdict(int)
    collectives: dict[str, int] = defaultdict(int)
    entries = []
    completed: dict[str, int] = defaultdict(int)
    for place, ((call, number), done) in enumerate(zip(each.issued, each.done, strict=True)):
        (p2p if call.is_p2p else collectives)[call.group] += 1
        if done:
            completed[call.group] = number
        state = "completed" if done else "started" if timed and place == each.first_open else "scheduled"
        entries.append({
            "record_id": place, "pg_id": numbers[call.group],
            "process_group": (call.group, groups.descriptions[call.group]),
            "collective_seq_id": collectives[call.group], "p2p_seq_id": p2p[call.group], "op_id": number,
            "profiling_name": f"nccl:{call.what}", "time_created_ns": 1_000_000_000 + 1000 * place,
            "input_sizes": [list(call.given)], "input_dtypes": [call.dtype],
            "output_sizes": [list(call.got)], "output_dtypes": [call.dtype],
            "state": state, "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
            "retired": done, "timeout_ms": 600_000, "is_p2p": call.is_p2p,
        })  # fmt: skip
    for name in own:
        put = each.counts[name]
        status[str(numbers[name])] = {
            "last_enqueued_collective": put or -1, "last_started_collective": -1,
            "last_completed_collective": completed[name] or -1,
        }  # fmt: skip
    config = {
        name: {"name": name, "desc": groups.descriptions[name], "ranks": str(list(groups.members[name]))}
        for name in own
    }
    kept = [e for e in entries if not e["retired"]] if form == "active" else entries
    return {
        "version": "2.9", "nccl_version": "2.27.3", "pg_config": config, "pg_status": status,
        "entries": kept[-ring:],
    }  # fmt: skip
