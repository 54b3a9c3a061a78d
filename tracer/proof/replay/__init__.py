"""The mesh run for real on small arrays: proof of the trip, in the order a token travels.

``tiny`` shrinks a scenario; ``batch`` says which rows there are; ``checkpoint`` draws the weights and
``shards`` cuts them over the ``machine``'s GPUs, which share nothing but ``send``. ``walk`` hands out
every row's itinerary, the engine's own, and ``run`` moves what it says. Then the model: ``ends`` (the
embedding and the LM head), ``attention``, ``feed_forward``, ``moe`` and its three contracts, ordered by
``forward``. ``one_device`` is the same model without a mesh; ``checks``, ``trips`` and ``closed_forms``
compare, ``prove`` reports, and ``hop_numbers`` shows one token's numbers. ``generation`` goes on: K/V that
``kv_store`` kept, ``pool_move`` to another pool, and steps of a ``decode_batch`` through
``decode_attention``.

>>> from tracer import load_scenario
>>> from tracer.proof.replay import replay
>>> replay(load_scenario("six-cuts")).ok
True
"""

from tracer.proof.replay.faults import Fault, faults_of
from tracer.proof.replay.generation import replay_generation
from tracer.proof.replay.hop_numbers import Look, look
from tracer.proof.replay.prove import replay
from tracer.proof.replay.report import GenerationReport, ReplayReport

__all__ = [
    "Fault",
    "GenerationReport",
    "Look",
    "ReplayReport",
    "faults_of",
    "look",
    "replay",
    "replay_generation",
]
