"""Names of operations in PyTorch, Kineto and NCCL, and the kind behind each."""

from __future__ import annotations

import re
from functools import lru_cache

from tracer.runs.reading.recording import OpKind

_P2P = re.compile(r"(send|recv)\s+(\d+)\s*(?:->|<-)\s*(\d+)")
_PATTERNS = (
    (OpKind.ALL_GATHER, ("allgather", "all_gather", "_all_gather_base")),
    (OpKind.REDUCE_SCATTER, ("reducescatter", "reduce_scatter")),
    (OpKind.ALL_REDUCE, ("allreduce", "all_reduce")),
    (OpKind.ALL_TO_ALL, ("alltoall", "all_to_all")),
    (OpKind.BROADCAST, ("broadcast",)),
    (OpKind.BARRIER, ("barrier",)),
    (OpKind.SEND, ("send",)),
    (OpKind.RECV, ("recv", "receive")),
    (OpKind.GATHER, ("gather",)),
    (OpKind.SCATTER, ("scatter",)),
    (OpKind.REDUCE, ("reduce",)),
)  # fmt: skip


@lru_cache(maxsize=4096)
def kind_of(name: str) -> OpKind:
    """The kind that a name stands for.

    >>> [kind_of(name).value for name in ("nccl:_all_gather_base", "all_to_allv", "nccl:recv 0<-3")]
    ['all_gather', 'all_to_all', 'recv']
    """
    word = name.lower().rsplit(":", 1)[-1]
    for kind, parts in _PATTERNS:
        if any(part in word for part in parts):
            return kind
    return OpKind.OTHER


@lru_cache(maxsize=4096)
def peer_of(name: str) -> int | None:
    """The other rank of ``send 2->3`` or ``recv 2<-1``, counted inside the group.

    >>> peer_of("nccl:send 2->3"), peer_of("nccl:recv 2<-1"), peer_of("nccl:all_reduce")
    (3, 1, None)
    """
    found = _P2P.search(name)
    return None if found is None else int(found[3][:9])
