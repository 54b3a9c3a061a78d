"""Weight pull (DWDP): tokens stay, and the experts that are not local come to them."""

from __future__ import annotations

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
        transfers += pulls_to(scenario, where, puller)
    crosses = any(transfer.tier == "ib" for transfer in transfers)
    word = scenario.cluster.island_word
    note = f"WARNING: the dwdp group spans {word}s: weights are pulled over IB" if crosses else ""
    return make_hop(HopKind.WEIGHT_PULL, where, transfers, note=note)


def experts_by_owner(scenario: Scenario, where: Where, puller: int) -> dict[int, list[int]]:
    """Every expert of the layer, under the EP rank that serves it to the puller, ascending."""
    placement = scenario.placement_of(where.layer)
    found: dict[int, list[int]] = {}
    for expert in range(placement.experts):
        found.setdefault(choose_ep_rank(scenario, placement, where, puller, expert), []).append(expert)
    return dict(sorted(found.items()))


def pulls_to(scenario: Scenario, where: Where, puller: int) -> list[Transfer]:
    """One transfer from each rank that owns a slice the puller lacks."""
    mesh, etp_size = scenario.mesh, scenario.mesh.size_of("etp")
    own = mesh.expert_coordinate(puller, "ep"), mesh.expert_coordinate(puller, "etp")
    edp, whole = mesh.expert_coordinate(puller, "edp"), expert_bytes(scenario)
    pulls = []
    for ep, experts in experts_by_owner(scenario, where, puller).items():
        for etp in range(etp_size):
            if (ep, etp) != own:
                slice_bytes = whole * (etp + 1) // etp_size - whole * etp // etp_size
                owner = mesh.expert_rank(where.stage, etp=etp, ep=ep, edp=edp)
                pulls.append(send(scenario, owner, puller, len(experts) * slice_bytes, Role.WEIGHTS))
    return pulls
