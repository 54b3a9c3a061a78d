"""Evidence about late ranks, rule by rule; ``blame`` states the rules and ranks what is found."""

from __future__ import annotations

from collections import defaultdict

from tracer.runs.families import family_of
from tracer.runs.frontier import Frontier
from tracer.runs.precedent import Precedent, call_of
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

MAX_DECODED = 64
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
        self.absent_half: dict[int, str] = {}
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
        self._frontiers: dict[int, Frontier] = {}
        self._followed: set[int] = set()
        self._decoded_here = 0
        self.witnesses: dict[tuple[int, str], set[int]] = defaultdict(set)

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
        for record in self._in_question():
            if self._is_known(record.rank):
                self.follow(record.rank)

    def frontier(self, rank: int) -> Frontier:
        """Where a rank stands, from its operations, which are decoded if they are not yet."""
        if rank not in self._frontiers:
            self._decoded_here += not self._is_known(rank)
            self._frontiers[rank] = Frontier.of(self.ranks[rank])
        return self._frontiers[rank]

    def can_look(self, rank: int) -> bool:
        """Whether a rank's operations are at hand, or may still be decoded."""
        return self._is_known(rank) or self._decoded_here < MAX_DECODED

    def _is_known(self, rank: int) -> bool:
        """Whether a rank's operations are at hand: decoding one of a large run takes a tenth of a second."""
        return not self.is_large or self.ranks[rank].decoded

    def follow(self, rank: int) -> None:
        """Waits of a rank in the operation at its front: for members that are absent, or held up."""
        if rank in self._followed or rank in self.faulted or not self.can_look(rank):
            return
        self._followed.add(rank)
        head = self.frontier(rank).head
        if head is None or not head.group.members:
            return
        if head.peer is not None:
            self._follow_pair(rank, head)
        elif head.sequence is not None and head.group not in self.paired:
            self._follow_group(rank, head)

    def _follow_group(self, rank: int, head: Op) -> None:
        """Members that issued a collective and wait in an earlier one, and those without a recording."""
        gone, is_held = [], False
        for member in head.group.members[:MAX_WAITED_FOR] if self.is_large else head.group.members:
            if member == rank:
                continue
            if member not in self.ranks:
                gone.append(member)
                continue
            known = self._progress(member, head.group)
            if known is not None and known.enqueued is not None and known.enqueued < (head.sequence or 0):
                is_held = True  # a wait of its own tells that
                self._witness(rank, member, head)
                continue
            if member in self.faulted or not self._is_known(member):
                continue
            theirs = self.frontier(member)
            issued = theirs.issued(head.group, head.sequence or 0)
            if issued is not None and theirs.blocks(issued):
                is_held = True
                why = f"rank {member} has issued {head}, but waits in {theirs.head}"
                self._wait(rank, member, head.group, why, is_pair=True)
        if gone and not is_held and not self._is_mismatched(head):
            self._follow_absent(rank, head, gone)

    def _witness(self, rank: int, member: int, head: Op) -> None:
        """Whether a member that has not issued an operation waits in one that others issued after it."""
        if member in self.faulted or not self._is_known(member):
            return
        theirs, mine = self.frontier(member).head, self.frontier(rank)
        if theirs is None or theirs.sequence is None or theirs.group in self.paired:
            return
        later = mine.issued(theirs.group, theirs.sequence)
        if later is not None and later.index > head.index:
            self.witnesses[member, f"{theirs}, which its peers issued after {head}"].add(rank)

    def passed(self) -> dict[int, str]:
        """Ranks that most witnesses saw pass an operation by, and what they passed."""
        most = max(map(len, self.witnesses.values()), default=0)
        return {
            member: f"it waits in {what}, and has not issued that one"
            for (member, what), seen in self.witnesses.items()
            if len(seen) == most
        }

    def _is_mismatched(self, head: Op) -> bool:
        return any(member in self.mismatched for member in head.group.members)

    def _follow_absent(self, rank: int, head: Op, gone: list[int]) -> None:
        """Rule 6: all that were recorded are there, so those without a recording are waited for."""
        recorded = head.group.size - len(gone)
        for member in gone:
            why = (
                f"it gave no recording, and all {recorded} other recorded ranks of {head.group} "
                "wait in a collective that they have issued"
            )
            self._wait(rank, member, head.group, why)
            if 2 * recorded >= head.group.size and self._is_mostly_recorded:
                self.absent.setdefault(member, why)

    @property
    def _is_mostly_recorded(self) -> bool:
        return 2 * len(self.ranks) > self.recording.world_size

    def _follow_pair(self, rank: int, head: Op) -> None:
        """The other half of a send or receive: not recorded, absent, or behind another wait."""
        peer = head.peer
        if peer is None or peer == rank:
            return
        if peer not in self.ranks:
            verb = "receive from" if head.kind is OpKind.RECV else "send to"
            why = f"it gave no recording, and rank {rank} waits to {verb} it in {head.group}"
            self._wait(rank, peer, head.group, why, is_pair=True)
            if self._is_mostly_recorded:
                self.absent_half.setdefault(peer, why)
        elif peer not in self.faulted and self.can_look(peer):
            theirs = self.frontier(peer)
            half = theirs.facing(head, rank)
            if half is None:
                why = f"rank {rank} waits in {head}, and rank {peer} has not issued the other half"
                self._wait(rank, peer, head.group, why, is_pair=True)
            elif theirs.blocks(half):
                why = f"rank {peer} has issued {half}, but waits in {theirs.head}"
                self._wait(rank, peer, head.group, why, is_pair=True)

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
        if not group.description and self._counts_pairs(group, known, max(done.values(), default=0)):
            return
        if len(set(done.values())) > 1:
            self._behind(group, done)
        if len(set(put.values())) > 1:
            self._not_there(group, put, known)

    def _counts_pairs(self, group: Group, known: dict[int, Progress], most: int) -> bool:
        """Whether a group that nothing is known of counts what not all take part in: sends and receives.

        Where a collective has ended, every member has issued it.
        """
        lacks = any(each.enqueued is not None and each.enqueued < most for each in known.values())
        return lacks and not any(
            op.group == group and op.kind.needs_all
            for rank in known
            if self.ranks[rank].decoded or not self.is_large
            for op in self.ranks[rank].ops
        )

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
                    if self.frontier(rank).blocks(ops[rank]):
                        continue  # its GPU waits in an earlier operation
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
            kinds[call_of(op)].append(rank)
        if len(kinds) < 2:
            return False
        parties = sorted(kinds.values(), key=len, reverse=True)
        most = len(parties[0])
        tied = [party for party in parties if len(party) == most]
        odd = [party for party in parties if len(party) < most]
        if len(tied) > 1:
            odd += [tied[place] for place in self._odd(group, sequence, [ops[party[0]] for party in tied])]
        right = [party for party in parties if party not in odd]
        for party in odd:
            other_rank = next(each for each in (right or parties) if each is not party)[0]
            for rank in party:
                self.mismatched.setdefault(
                    rank,
                    f"at number {sequence:,} of {group} it waits in {_call(ops[rank])}, "
                    f"and rank {other_rank} in {_call(ops[other_rank])}",
                )
                for waiter in ops:
                    if waiter not in party:
                        self._wait(waiter, rank, group, self.mismatched[rank])
        return True

    def _odd(self, group: Group, sequence: int, parties: list[Op]) -> list[int]:
        """Which of parties of equal size does what the job does nowhere else."""
        known = (each for each in self.ranks.values() if each.decoded or not self.is_large)
        return Precedent(group, sequence, known).odd(parties)


def _call(op: Op) -> str:
    return f"{op.kind} of {op.shapes_text} {op.dtype}"
