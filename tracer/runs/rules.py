"""The rules by which a late rank is named, each with its limits, in the words that pages show."""

from __future__ import annotations

RULES = (
    (
        1,
        "Behind its peers: in a group, a rank that has not completed a collective which a peer has "
        "completed is faulted. The collective needs all, so its part was done, and only the rank "
        "itself (its GPU, its driver, its watchdog) can fail to see the end.",
        "Dumps taken while a job runs differ by what happened in between: where more than half of the "
        "ranks would be named, none is, and a warning says so.",
    ),
    (
        2,
        "Not there: a rank that has not issued a collective which a peer waits in is waited for. It "
        "is a cause unless it waits itself: then the one it waits for is. Ranks that recorded nothing "
        "while their peers wait fall under this rule.",
        "A rank waits in its first pending operation that is no send and that nothing issued later "
        "has overtaken. Where ranks wait for one another in a circle, the one is named whose last "
        "operations follow on one another as nowhere else in the job, else the one that most others "
        "saw pass an operation by, else all of the circle.",
    ),
    (
        3,
        "Sends without receives: of a pair, the side that has fewer operations pending keeps the "
        "other waiting.",
        "A rank that does not notice completions (rule 1) shows pending operations that are long "
        "over, and sends issued together end together: so a pair alone names a rank only where no "
        "other rule names one, and where that rank has nothing pending.",
    ),
    (
        4,
        "Different collectives: members of a group that wait under one sequence number in different "
        "kinds, sizes or dtypes wait for ever; the smaller party is named.",
        "Of equal parties, the one is named that does what came next nowhere else after the same "
        "operations, or whose dtype or size no other operation has; both, where the recording does "
        "not tell.",
    ),
    (
        5,
        "Not started: where all have issued a collective and some GPUs have started it, those that "
        "have not, and wait in nothing earlier, are waited for.",
        'Recorders that do not time kernels show "scheduled" throughout.',
    ),
    (
        6,
        "No recording: a rank without a recording is named where a peer waits and all other members "
        "have arrived.",
        "At least half of the group and more than half of the job must be recorded.",
    ),
)
"""Number, rule and limits. Sequence numbers are compared inside one group, never between groups; groups that
carry sends and receives count those too, each rank its own, and are left to rule 3."""
