"""A slow, plain, second opinion on a trip: loops over all ranks, written apart from the engine.

Read in this order: ranks, islands, landing, decode, payloads, experts, moe, dense, heads, shards, walk;
then keepers and weights.
"""

from oracle.landing import landing_table, token_home
from oracle.ranks import AXES, GROUP_NAMES, OracleMesh
from oracle.walk import OracleHop, OracleTrip, walk
from oracle.weights import OracleWeights

__all__ = [
    "AXES",
    "GROUP_NAMES",
    "OracleHop",
    "OracleMesh",
    "OracleTrip",
    "OracleWeights",
    "landing_table",
    "token_home",
    "walk",
]
