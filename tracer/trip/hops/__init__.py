"""What each kind of hop moves: one file per axis, one function ``(scenario, where) -> Hop`` per kind.

A new kind is a row of ``HopKind`` (``trip/hop.py``), a function here, and a stop in ``trip/itinerary.py``.
``routes`` says which replica serves a token and by which relay it is reached; ``moves`` is what several
kinds share.
"""

from tracer.trip.hops.cp import kv_exchange, partials_return, query_send
from tracer.trip.hops.ep import combine, dispatch, weight_pull
from tracer.trip.hops.gathers import weight_gather
from tracer.trip.hops.heads import heads_gather, heads_scatter
from tracer.trip.hops.pp import land, pp_send
from tracer.trip.hops.routing import counts_gather, counts_reduce, probs_dispatch
from tracer.trip.hops.state import state_pass
from tracer.trip.hops.tp import all_gather, all_reduce, head_copy, logits_gather, reduce_scatter

SAME_IN_EVERY_LAYER = frozenset(
    {
        all_gather,
        all_reduce,
        heads_gather,
        heads_scatter,
        kv_exchange,
        partials_return,
        query_send,
        reduce_scatter,
        state_pass,
    }
)
"""Hops whose transfers depend on the home rank, the part and the kind of the layer, and on nothing else."""

__all__ = [
    "SAME_IN_EVERY_LAYER",
    "all_gather",
    "all_reduce",
    "combine",
    "counts_gather",
    "counts_reduce",
    "dispatch",
    "head_copy",
    "heads_gather",
    "heads_scatter",
    "kv_exchange",
    "land",
    "logits_gather",
    "partials_return",
    "pp_send",
    "probs_dispatch",
    "query_send",
    "reduce_scatter",
    "state_pass",
    "weight_gather",
    "weight_pull",
]
