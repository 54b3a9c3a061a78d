"""A user's own DeepEP tests as link rates: what test_intranode, test_internode and test_low_latency print.

The normal tests print the best of their tuning as GB/s over NVLink, and between nodes over RDMA. The RDMA
figure counts the copy for a token's own node, which never leaves it, so that a NIC carries (nodes-1)/nodes
of it. The low-latency test prints GB/s of all picks, those of the GPU itself among them. One size of message
does not tell a latency from a rate: the rate holds the latency, and the link has none.
"""

from __future__ import annotations

import re
from statistics import median

from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.timing.rates import Profile
from tracer.trip.clock import LinkRates

GPUS_PER_NODE = 8
_BEST = re.compile(r"\[tuning\] Best (?:dispatch|combine)\b[^\n]*")
_LOW = re.compile(
    r"\[rank (\d+)\] Dispatch bandwidth: ([\d.]+) GB/s[^\n|]*\| Combine bandwidth: ([\d.]+) GB/s"
)
_RATE = re.compile(r"([\d.]+) GB/s \((NVL|RDMA)\)")
_NODES = re.compile(r"\b(?:num_)?nodes\s*[=:]\s*(\d+)")
_RANK = re.compile(r"\[rank (\d+)\]")


def is_deepep_output(text: str) -> bool:
    """Whether a text has a line of results of DeepEP's tests."""
    return bool(_BEST.search(text) or _LOW.search(text))


def deepep_profile(name: str, text: str, cluster: LinkRates) -> Profile:
    """Link rates by one DeepEP test: the median of its results; a tier that it did not use stays as it is.

    The number of nodes is that of a line such as ``nodes = 2``, or of 8 ranks each where every rank printed
    its line.

    Raises:
        ConfigError: without results, or for RDMA without a number of nodes.
    """
    near, far = _normal(text)
    low = [(float(there), float(back)) for _, there, back in _LOW.findall(text)]
    if not near and not far and not low:
        rule = "has no results of DeepEP's tests ('[tuning] Best dispatch ...' or '... bandwidth: ... GB/s')"
        raise ConfigError("profile", name, rule, "give the whole output of the test")
    ranks = 1 + max((int(rank) for rank in _RANK.findall(text)), default=0)
    told = _NODES.search(text)
    nodes = int(told[1]) if told else -(-ranks // GPUS_PER_NODE)
    if far and nodes < 2:
        rule = "has RDMA rates and does not say of how many nodes"
        raise ConfigError("profile", name, rule, "write a line 'nodes = 2' at its head")
    if low:
        picks = [value for pair in low for value in pair]
        if nodes > 1:
            far = [value * (nodes - 1) / nodes for value in picks]
        else:
            near = [value * (ranks - 1) / ranks for value in picks]
    elif nodes > 1:
        far = [value * (nodes - 1) / nodes for value in far]
    nvlink = Link(median(near) * 1e9, 0.0) if near else cluster.nvlink
    rails = Link(median(far) * 1e9, 0.0) if far else cluster.ib
    kind = "low latency" if low else "normal"
    return Profile(
        name,
        "the user's own DeepEP test",
        f"{kind} dispatch and combine, {nodes} node(s), {len(low) or len(_BEST.findall(text))} result(s)",
        "the median of its rates, latency inside; over RDMA without the copies of a token's own node",
        LinkRates(nvlink, rails),
    )


def _normal(text: str) -> tuple[list[float], list[float]]:
    """GB/s of the best tunings over NVLink and over RDMA.

    Between nodes the NVLink figure is what the rails let through, so that only RDMA counts there.
    """
    near, far = [], []
    for line in _BEST.findall(text):
        rates = {tier: float(value) for value, tier in _RATE.findall(line) if float(value) > 0}
        if "RDMA" in rates:
            far.append(rates["RDMA"])
        elif "NVL" in rates:
            near.append(rates["NVL"])
    return near, far
