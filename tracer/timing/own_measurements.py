"""A user's own measurements as link rates: the output of nccl-tests.

Columns of a row: size in bytes, count, type, redop, root, then time (µs), algbw and busbw out of place
(NVIDIA/nccl-tests, doc/PERFORMANCE.md). Bus bandwidth is what a port carries, so that time = latency of
the whole collective + port bytes / link rate; the rate is fitted, and the latency shared over a ring's steps.
"""

from __future__ import annotations

import re

from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.timing.collectives import busbw_factor, latency_steps
from tracer.timing.rates import CollectiveFit, Profile, fit_two_lines
from tracer.trip.clock import LinkRates

MAX_ROWS = 10_000
_RANK = re.compile(r"^#\s+Rank\s+\d+\b.*?\bon\s+(\S+)", re.MULTILINE)
_KINDS = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|gather|scatter|sendrecv)_perf\b"
)
_ROW = re.compile(r"^\s*(\d+)\s+\d+\s+[a-z]\w*\s+\S+\s+-?\d+\s+([\d.]+)\s+[\d.]+\s+[\d.]+", re.MULTILINE)
_NAMES = {"alltoall": "all_to_all", "sendrecv": "send_recv"}


def nccl_profile(name: str, text: str, cluster: LinkRates, kind: str | None = None) -> Profile:
    """Link rates fitted to one nccl-tests run: NVLink where its ranks are on one host, else IB.

    The other tier stays the cluster's. ``kind`` names the collective where the output does not.

    Raises:
        ConfigError: without ranks, a collective or at least six rows of growing size, or where times do
            not grow with the bytes.
    """
    hosts, named = _RANK.findall(text), _KINDS.search(text)
    word = kind or (None if named is None else _NAMES.get(named[1], named[1]))
    if word is None:
        rule = "does not name its collective, such as all_reduce_perf"
        raise ConfigError("profile", name, rule, "keep the line of the command in the file")
    if len(hosts) < 2:
        rule = "lists fewer than two ranks (lines '#  Rank  0 ... on host')"
        raise ConfigError("profile", name, rule, "keep the head of nccl-tests' output")
    rows = sorted({int(size): float(micros) for size, micros in _ROW.findall(text)}.items())
    rows = [(size, micros) for size, micros in rows if size and micros]
    if not 6 <= len(rows) <= MAX_ROWS:
        rule = f"has {len(rows)} rows of sizes above 0; 6 to {MAX_ROWS:,} can be fitted"
        raise ConfigError("profile", name, rule, "run nccl-tests with -b 1K -e 1G -f 2")
    factor = busbw_factor(word, len(hosts))
    lines = fit_two_lines([factor * size for size, _ in rows], [micros * 1e-6 for _, micros in rows])
    fastest = max(lines, key=lambda line: line.bytes_per_s)
    latency = min(line.latency_s for line in lines) / latency_steps(word, len(hosts))
    link = Link(fastest.bytes_per_s, latency)
    between = len(set(hosts)) > 1
    return Profile(
        name,
        "the user's own nccl-tests",
        f"{word}, {len(hosts)} GPUs on {len(set(hosts))} host(s), {len(rows)} sizes",
        "two lines by relative least squares; the rate of the faster, the latency over a ring's steps",
        cluster._replace(ib=link) if between else cluster._replace(nvlink=link),
        (CollectiveFit(word, len(hosts), lines),),
    )
