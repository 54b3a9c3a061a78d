"""Weight pull (DWDP): tokens stay, and the experts that are not local come to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracer import parameters
from tracer.hop import Hop, HopKind, Role, Transfer, Where
from tracer.hops.moves import make_hop, moe_sources, send
from tracer.hops.routes import choose_ep_rank
from tracer.weight_format import WeightFormat

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def expert_bytes(scenario: Scenario) -> int:
    """Bytes of one routed expert: gate, up and down projections.

    They are stored as the model says; where it says nothing, in the scenario's weights dtype.
    """
    return parameters.expert_bytes(scenario.need_model(), WeightFormat(scenario.dtype.weights))


def weight_pull(scenario: Scenario, where: Where) -> Hop:
    """Each rank that runs the token's FFN pulls every expert slice it does not hold, picked or not.

    Pulls touch no GPU and add no crossing; their bytes are tallied apart from the token's.
    """
    transfers: list[Transfer] = []
    for puller in moe_sources(scenario, where.home):
        transfers += _pulls(scenario, where, puller)
    crosses = any(transfer.tier == "ib" for transfer in transfers)
    word = scenario.cluster.island_word
    note = f"WARNING: the dwdp group spans {word}s: weights are pulled over IB" if crosses else ""
    return make_hop(HopKind.WEIGHT_PULL, where, transfers, note=note)


def _pulls(scenario: Scenario, where: Where, puller: int) -> list[Transfer]:
    mesh, placement = scenario.mesh, scenario.placement_of(where.layer)
    own_ep, own_etp = mesh.expert_coordinate(puller, "ep"), mesh.expert_coordinate(puller, "etp")
    edp, etp_size = mesh.expert_coordinate(puller, "edp"), mesh.size_of("etp")
    whole = expert_bytes(scenario)
    counts = Counter(
        choose_ep_rank(scenario, placement, where, puller, expert) for expert in range(placement.experts)
    )
    pulls = []
    for ep, experts in sorted(counts.items()):
        for etp in range(etp_size):
            if (ep, etp) == (own_ep, own_etp):
                continue
            slice_bytes = whole * (etp + 1) // etp_size - whole * etp // etp_size
            owner = mesh.expert_rank(where.stage, etp=etp, ep=ep, edp=edp)
            pulls.append(send(scenario, owner, puller, experts * slice_bytes, Role.WEIGHTS))
    return pulls
