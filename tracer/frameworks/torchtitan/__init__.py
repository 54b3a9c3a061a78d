"""torchtitan: ``tp-cp-dp_shard-dp_replicate-pp``, experts ``ep-efsdp-dp_replicate-pp``.

Sources: ``torchtitan/distributed/parallel_dims.py`` (ParallelDims) and ``torchtitan/config`` read at
b5bcd76c (2026-08) and in the 0.3.0 wheel; ``torch/distributed/device_mesh.py`` of torch 2.11.
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework
from tracer.frameworks.torchtitan.flags import FLAGS
from tracer.frameworks.torchtitan.mesh import read, write

FRAMEWORK = Framework(
    "torchtitan",
    "torchtitan",
    FLAGS,
    Dialect(underscores=True, attached=False),
    read,
    others=read_other_flags(__name__),
    write=write,
)
