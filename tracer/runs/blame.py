"""Who is late: the ranks that others wait for, with the evidence in words.

``rules`` states the rules by which a rank is named, each with its limits; ``inquiry`` collects the evidence,
``frontier`` tells what a rank waits in, ``precedent`` which of two that disagree does what the job does
elsewhere. Here the evidence is ranked, so that the cause stands before those that suffer.
"""

from __future__ import annotations

from collections.abc import Callable

from tracer.runs.inquiry import Inquiry
from tracer.runs.precedent import strays
from tracer.runs.reading.recording import Group, Recording
from tracer.runs.waits import Blame, Suspect, Wait, reach

MAX_NAMED_SHARE = 0.5
MAX_CIRCLE = 32
"""Ranks in circles of waits whose programs are held against others'."""


def blame(recording: Recording) -> Blame:
    """Apply the rules to a recording."""
    inquiry = Inquiry(recording)
    inquiry.run()
    return _Verdict(inquiry).result


class _Verdict:
    """The evidence of an inquiry ranked: causes before those that suffer."""

    def __init__(self, inquiry: Inquiry) -> None:
        self.found = inquiry
        self.ranks, self.members, self.waits = inquiry.ranks, inquiry.members, inquiry.waits
        self.result = Blame()
        self._rank_suspects()

    def _rank_suspects(self) -> None:
        """Causes: faulted and mismatched ranks, then the ends of the wait graph."""
        causes: dict[int, tuple[int, str]] = {}
        found = self.found
        by_rule = ((1, found.faulted), (4, found.mismatched), (5, found.unstarted))
        for rule, evidence in by_rule:
            for rank, why in evidence.items():
                causes.setdefault(rank, (rule, why))
        for rank, why in {**found.absent_half, **found.absent}.items():
            if self._is_suspicious(rank, causes):
                causes.setdefault(rank, (6, why))
        for rank, why in self._ends(causes).items():
            causes.setdefault(rank, (2, why))
        causes = {
            rank: each for rank, each in causes.items() if each[0] != 6 or self._is_suspicious(rank, causes)
        }
        if not causes:
            causes = {rank: (6, why) for rank, why in {**found.absent_half, **found.absent}.items()}
        by_position = sum(rule in (1, 2) for rule, _ in causes.values())
        if by_position > max(2, MAX_NAMED_SHARE * len(self.ranks)):
            self.result.warnings.append(
                f"{by_position} of {len(self.ranks)} recorded ranks stand behind a peer: the recordings look "
                "as if they were taken at different moments of a running job, so none of these is named"
            )
            causes = {rank: each for rank, each in causes.items() if each[0] not in (1, 2)}
        if not causes:
            self._warn_of_stuck_groups()
        self.result.waits = list(self.waits.values())
        suspects = [
            Suspect(rank, why, rule, len(self.result.waiting_for(rank)))
            for rank, (rule, why) in causes.items()
        ]
        suspects.sort(key=lambda each: (_ORDER[each.rule], -each.waiting, each.rank))
        self.result.suspects = suspects

    def _is_suspicious(self, rank: int, causes: dict[int, tuple[int, str]]) -> bool:
        """Whether a rank without a recording holds up those that do the same work: its closest group.

        They wait in a collective with it. A cause among them explains that; where they wait for others, it
        most likely does too.
        """
        own = [group.members for group in self.members if rank in group.members]
        closest = min(own, key=lambda members: max(members) - min(members), default=())
        heads = [
            self.found.frontier(peer).head
            for peer in closest[:MAX_CIRCLE]
            if peer in self.ranks and self.found.can_look(peer)
        ]
        return not set(closest) & (set(causes) - {rank}) and any(
            head is not None and head.peer is None and rank in head.group.members for head in heads
        )

    def _warn_of_stuck_groups(self) -> None:
        """Say where all wait and none is behind: sequence numbers cannot tell whose GPU is slow."""
        stuck = [
            group
            for group, members in self.members.items()
            if group not in self.found.paired
            and len(members) == group.size
            and all(map(self._waits_in(group), members))
        ]
        if stuck:
            more = f" and {len(stuck) - 1} more groups" if len(stuck) > 1 else ""
            self.result.warnings.append(
                f"all members of {stuck[0]}{more} wait in a collective that all have issued: if the job "
                "hangs, this recording cannot tell whose GPU or link holds it up (no start times)"
            )

    def _waits_in(self, group: Group) -> Callable[[int], bool]:
        def waits(rank: int) -> bool:
            found = self.ranks[rank].progress.get(group)
            return (
                found is not None and found.completed is not None and (found.enqueued or 0) > found.completed
            )

        return waits

    def _ends(self, causes: dict[int, tuple[int, str]]) -> dict[int, str]:
        """Ranks that others wait for and that wait for nobody, or for one another in a circle."""
        ends = self._free(causes)
        while self.found.is_large and any(map(self._follow_on, ends)):
            ends = self._free(causes)
        named = {rank: wait.why for rank, wait in ends.items() if not wait.is_pair}
        if named or causes:
            return named
        idle = {rank: wait.why for rank, wait in ends.items() if not any(self.ranks[rank].pending())}
        return idle or self._circle()

    def _follow_on(self, rank: int) -> bool:
        """Look at what an end of the graph waits in itself; whether that told a wait."""
        before = len(self.waits)
        self.found.follow(rank)
        return len(self.waits) > before

    def _free(self, causes: dict[int, tuple[int, str]]) -> dict[int, Wait]:
        """Ranks that are waited for and wait for nobody that can be seen, with the clearest wait for each."""
        out: set[int] = set()
        why: dict[int, Wait] = {}
        for wait in self.waits.values():
            out.add(wait.waiter)
            if wait.culprit not in why or (why[wait.culprit].is_pair and not wait.is_pair):
                why[wait.culprit] = wait
        return {
            rank: wait
            for rank, wait in why.items()
            if rank in self.ranks and rank not in causes and rank not in out and not self._stuck(rank)
        }

    def _stuck(self, rank: int) -> bool:
        """Whether a rank waits in a collective itself: it suffers, and is no cause that can be seen."""
        return any(
            each.enqueued is not None and each.completed is not None and each.enqueued > each.completed
            and group not in self.found.paired and group.size > 1
            for group, each in self.ranks[rank].progress.items()
        )  # fmt: skip

    def _circle(self) -> dict[int, str]:
        """Ranks that wait for one another, where nobody else is a cause.

        Of these, one that waits in nothing but what it has already overtaken (a sum that runs beside its
        work) is not held up by it: it stopped on its own.
        """
        waits = list(self.waits.values())
        inside = {wait.culprit: wait for wait in waits if wait.culprit in reach(wait.culprit, waits)}
        known = (rank for rank in inside if rank in self.ranks and self.found.can_look(rank))
        near = [self.ranks[rank] for rank in known][:MAX_CIRCLE]
        others = [each for each in self.found.recording.sample if each.rank not in inside]
        odd = strays(near, others) if near else []
        if odd and len(odd) < len(near):
            return {
                rank: "what it issued last follows on what came before as nowhere else in the job, and it is "
                f"in a circle of waits: {inside[rank].why}"
                for rank in odd
            }
        if passed := self.found.passed():
            return passed
        stopped = [each.rank for each in near if self._is_free(each.rank)]
        return {rank: f"it is in a circle of waits: {inside[rank].why}" for rank in stopped or inside}

    def _is_free(self, rank: int) -> bool:
        return self.found.frontier(rank).is_free


_ORDER = {4: 0, 1: 1, 6: 2, 2: 3, 5: 4, 3: 5}
