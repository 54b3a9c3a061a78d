"""What ``tokentrip time`` says that a recorded collective takes, beside the time that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.runs.sizes import Bandwidth
from tracer.timing.estimate import collective

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario
    from tracer.timing.calibration.answer import Estimate


def expected_time(rate: Bandwidth, scenario: BareScenario | None) -> Estimate | None:
    """The estimate for a collective of these bytes and ranks on the scenario's hardware.

    None where no hardware is stated, or where no estimate covers the kind, the size or the spread of ranks.
    """
    cluster = None if scenario is None else scenario.cluster
    if cluster is None or cluster.hardware is None:
        return None
    nodes = len({rank // cluster.gpus_per_node for rank in rate.members}) or 1
    try:
        return collective(cluster.hardware, str(rate.kind), rate.ranks, rate.bytes, nodes)
    except ConfigError:
        return None
