"""Evidence about late ranks, rule by rule; ``blame`` states the rules and ranks what is found."""

from __future__ import annotations

from collections import defaultdict

from tracer.runs.families import family_of
from tracer.runs.reading.recording import (
    SMALL_RUN,
    Group,
    Op,
    OpKind,
    OpState,
    Progress,
    RankRecord,
    Recording,
    Source,
)
from tracer.runs.waits import Wait

MAX_DECODED = 128
"""Ranks of a large run whose operations are decoded to look for the cause."""
MAX_WAITED_FOR = 64
"""Ranks of one group that each waiting rank is held against: those furthest back."""


class Inquiry:
    """One pass over a recording; evidence is collected by rank."""

    def __init__(self, recording: Recording) -> None:
        self.ranks = recording.ranks
        self.recording = recording
        self.faulted: dict[int, str] = {}
        self.mismatched: dict[int, str] = {}
        self.unstarted: dict[int, str] = {}
        self.absent: dict[int, str] = {}
        self.waits: dict[tuple[int, int], Wait] = {}
        self.members: dict[Group, list[int]] = defaultdict(list)
        for rank, record in self.ranks.items():
            for group in record.groups:
                if group.size > 1:
                    self.members[group].append(rank)
        # The smallest group gives the clearest evidence: its members do the same work.
        self.members = dict(sorted(self.members.items(), key=lambda item: item[0].size))
        self.is_large = len(self.ranks) > SMALL_RUN and not all(r.decoded for r in self.ranks.values())
        self.paired = self._groups_with_pairs()

    def run(self) -> None:
        """Collect what every rule finds."""
        for group, members in self.members.items():
            if group not in self.paired:
                self._positions(group, members)
        for rank in self.faulted:  # what a faulted rank shows as pending may be long over
            self.waits = {pair: wait for pair, wait in self.waits.items() if pair[0] != rank}
        self._pairs()
        for group, members in self.members.items():
            if group not in self.paired:
                self._same_number(group, members)
        self._absent()

    def _groups_with_pairs(self) -> set[Group]:
        """Groups that carry sends and receives, and those described like them."""
        found, described = set(), set()
        for record in self.recording.sample:
            for op in record.ops:
                if op.kind.is_p2p:
                    found.add(op.group)
                    described.add(op.group.description)
        described.discard("")
        return {
            group
            for group in self.members
            if group in found or group.description in described or family_of(group.description) == "pp"
        }

    def _progress(self, rank: int, group: Group) -> Progress | None:
        found = self.ranks[rank].progress.get(group)
        if found is None and self.ranks[rank].recorded_nothing:
            return Progress(0, None) if not self.ranks[rank].progress else None
        return found

    def _positions(self, group: Group, members: list[int]) -> None:
        """Rules 1 and 2 in one group."""
        known = {rank: found for rank in members if (found := self._progress(rank, group)) is not None}
        if len(known) < 2:
            return
        done = {rank: each.completed for rank, each in known.items() if each.completed is not None}
        put = {rank: each.enqueued for rank, each in known.items() if each.enqueued is not None}
        if len(set(done.values())) > 1:
            self._behind(group, done)
        if len(set(put.values())) > 1:
            self._not_there(group, put, known)

    def _behind(self, group: Group, done: dict[int, int]) -> None:
        best = max(done, key=lambda rank: (done[rank], -rank))
        for rank, last in done.items():
            if last == done[best]:
                continue
            op = self._op_at(rank, group, last + 1)
            # Gloo's status may lag behind its own entries, which then say that the operation has ended.
            if op is not None and not (op.kind.needs_all and op.is_pending):
                continue
            what = f"{op.kind if op else 'collective'} {last + 1:,} of {group}"
            why = f"it has not completed {what}, which rank {best} has (it completed {done[best]:,})"
            self.faulted.setdefault(rank, why)
            self._wait(best, rank, group, why)

    def _op_at(self, rank: int, group: Group, sequence: int) -> Op | None:
        if self.ranks[rank].recorded_nothing:
            return None
        return next(
            (op for op in self.ranks[rank].ops if op.group == group and op.sequence == sequence), None
        )

    def _not_there(self, group: Group, put: dict[int, int], known: dict[int, Progress]) -> None:
        """A wait of each rank that has gone further for those that stand furthest back."""
        most = max(put.values())
        back = sorted((rank for rank in put if put[rank] < most), key=lambda rank: put[rank])[:MAX_WAITED_FOR]
        for waiter, reached in put.items():
            finished = known[waiter].completed
            if finished is not None and finished >= reached:
                continue
            for rank in back:
                if put[rank] < reached:
                    self._wait(waiter, rank, group, self._absence(group, rank, put[rank], waiter))

    def _absence(self, group: Group, rank: int, last: int, waiter: int) -> str:
        nothing = " and has nothing pending in its recording" if self.ranks[rank].recorded_nothing else ""
        return (
            f"it has issued {last:,} collectives of {group}{nothing}, "
            f"and rank {waiter} waits in number {last + 1:,} or later"
        )

    def _wait(self, waiter: int, culprit: int, group: Group, why: str, *, is_pair: bool = False) -> None:
        self.waits.setdefault((waiter, culprit), Wait(waiter, culprit, group, why, is_pair))

    def _pairs(self) -> None:
        """Rule 3: pending sends against pending receives, by pair and group."""
        pending: dict[tuple[int, int, Group], list[int]] = defaultdict(lambda: [0, 0])
        for record in self._in_question():
            for op in record.pending():
                if op.peer is None or op.peer == record.rank:
                    continue
                if op.kind is OpKind.SEND:
                    pending[record.rank, op.peer, op.group][0] += 1
                elif op.kind is OpKind.RECV:
                    pending[op.peer, record.rank, op.group][1] += 1
        for (src, dst, group), (sends, receives) in pending.items():
            if sends > receives and dst in self.ranks and src not in self.faulted:
                why = f"rank {src} waits with {sends - receives} sends of {group} that it does not receive"
                self._wait(src, dst, group, why, is_pair=True)
            elif receives > sends and src in self.ranks and dst not in self.faulted:
                why = f"rank {dst} waits for {receives - sends} sends of {group} that it has not issued"
                self._wait(dst, src, group, why, is_pair=True)

    def _in_question(self) -> list[RankRecord]:
        """All ranks of a small run; of a large one, those that a wait or a fault names, and their peers."""
        if not self.is_large or not (self.waits or self.faulted):
            return list(self.ranks.values())
        named = set(self.faulted) | {wait.culprit for wait in self.waits.values()}
        near = {
            rank
            for group, members in self.members.items()
            if group.size <= MAX_WAITED_FOR and named & set(group.members)
            for rank in members
        }
        return [self.ranks[rank] for rank in sorted(named | near)[:MAX_DECODED]]

    def _same_number(self, group: Group, members: list[int]) -> None:
        """Rules 4 and 5: what members wait in under one sequence number."""
        at: dict[int, dict[int, Op]] = defaultdict(dict)
        for rank in members:
            if self.ranks[rank].decoded or not self.is_large:
                for op in self._unfinished(rank, group):
                    at[op.sequence or 0][rank] = op
        for sequence in sorted(at):
            ops = at[sequence]
            if len(ops) < 2:
                continue
            if self._mismatch(group, sequence, ops):
                return
            started = [rank for rank, op in ops.items() if op.state is OpState.STARTED]
            waiting = [rank for rank, op in ops.items() if op.state is OpState.SCHEDULED]
            if started and waiting and len(ops) == len(members):
                for rank in waiting:
                    why = f"its GPU has not started {ops[rank]}, which rank {started[0]} has started"
                    self.unstarted.setdefault(rank, why)
                    for other in started:
                        self._wait(other, rank, group, why)

    def _unfinished(self, rank: int, group: Group) -> list[Op]:
        """Pending collectives of a group; of a log, which tells no ends, all."""
        record = self.ranks[rank]
        if record.source is Source.NCCL_LOG:
            return [op for op in record.ops if op.group == group and op.sequence is not None]
        return [op for op in record.pending() if op.group == group and op.sequence is not None]

    def _mismatch(self, group: Group, sequence: int, ops: dict[int, Op]) -> bool:
        """Whether members wait under one number in different collectives; the smaller party is named."""
        kinds: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for rank, op in ops.items():
            same = op.kind not in (OpKind.ALL_TO_ALL, OpKind.GATHER, OpKind.SCATTER)
            sizes = (op.in_elements, op.dtype) if same and op.kind is not OpKind.OTHER else ()
            kinds[op.kind, sizes].append(rank)
        if len(kinds) < 2:
            return False
        parties = sorted(kinds.values(), key=len, reverse=True)
        most = ops[parties[0][0]]
        for party in parties if len(parties[0]) == len(parties[1]) else parties[1:]:
            other = most if party is not parties[0] else ops[parties[1][0]]
            other_rank = parties[0][0] if party is not parties[0] else parties[1][0]
            for rank in party:
                mine = ops[rank]
                self.mismatched.setdefault(
                    rank,
                    f"at number {sequence:,} of {group} it waits in {_call(mine)}, "
                    f"and rank {other_rank} in {_call(other)}",
                )
                self._wait(other_rank, rank, group, self.mismatched[rank])
        return True

    def _absent(self) -> None:
        """Rule 6."""
        if not self.recording.missing or 2 * len(self.ranks) <= self.recording.world_size:
            return
        missing = set(self.recording.missing)
        for group, members in self.members.items():
            gone = [rank for rank in group.members if rank in missing]
            if not gone or 2 * len(members) < group.size or group in self.paired:
                continue
            known = [self._progress(rank, group) for rank in members]
            put = {each.enqueued for each in known if each is not None}
            waiting = [
                r
                for r, each in zip(members, known, strict=True)
                if each is not None and each.completed is not None and (each.enqueued or 0) > each.completed
            ]
            if len(put) == 1 and len(waiting) == len(members):
                for rank in gone:
                    why = (
                        f"it gave no recording, and all {len(members)} other recorded ranks of {group} "
                        "wait in a collective that they have issued"
                    )
                    self.absent.setdefault(rank, why)
                    for waiter in waiting:
                        self._wait(waiter, rank, group, why)


def _call(op: Op) -> str:
    return f"{op.kind} of {op.shapes_text} {op.dtype}"
