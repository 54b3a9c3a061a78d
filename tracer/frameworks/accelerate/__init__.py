"""Hugging Face Accelerate: ``tp-sp-cp-dp_shard-dp_replicate`` of its ``ParallelismConfig``.

Source: ``accelerate/parallelism_config.py`` (ParallelismConfig) and ``commands/launch.py`` of the 1.15.0
wheel.
"""

from tracer.frameworks.accelerate.flags import FLAGS
from tracer.frameworks.accelerate.mesh import read, write
from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework

FRAMEWORK = Framework(
    "accelerate",
    "Accelerate",
    FLAGS,
    Dialect(underscores=True),
    read,
    others=read_other_flags(__name__),
    write=write,
)
