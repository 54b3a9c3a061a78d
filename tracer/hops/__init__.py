"""One file a kind of hop, one signature: ``(scenario, where) -> Hop``."""

from tracer.hops.all_gather import all_gather
from tracer.hops.all_reduce import all_reduce
from tracer.hops.combine import combine
from tracer.hops.dispatch import dispatch
from tracer.hops.kv_exchange import kv_exchange
from tracer.hops.land import land
from tracer.hops.lm_head import head_copy, logits_gather
from tracer.hops.pp_send import pp_send
from tracer.hops.query import partials_return, query_send
from tracer.hops.reduce_scatter import reduce_scatter
from tracer.hops.weight_pull import weight_pull

__all__ = [
    "all_gather",
    "all_reduce",
    "combine",
    "dispatch",
    "head_copy",
    "kv_exchange",
    "land",
    "logits_gather",
    "partials_return",
    "pp_send",
    "query_send",
    "reduce_scatter",
    "weight_pull",
]
