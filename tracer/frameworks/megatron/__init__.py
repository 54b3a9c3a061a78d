"""Megatron-LM and Megatron-Core: ``tp-cp-dp-pp``, experts on a second grid ``etp-ep-edp-pp``.

Sources: ``megatron/core/parallel_state.py`` (RankGenerator, initialize_model_parallel),
``megatron/training/arguments.py`` and ``initialize.py``, read at d98e8a64 (2026-08).
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.megatron.flags import FLAGS
from tracer.frameworks.megatron.mesh import read, write
from tracer.frameworks.megatron.model import model_of_sizes
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework

FRAMEWORK = Framework(
    "megatron",
    "Megatron-LM",
    FLAGS,
    Dialect(),
    read,
    others=read_other_flags(__name__),
    write=write,
    sizes_model=model_of_sizes,
)
