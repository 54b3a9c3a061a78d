"""nanotron: ``tp-cp-dp-pp-ep`` with EP outermost in the table and missing from the world check.

Source: ``src/nanotron/parallel/context.py`` (ParallelContext), read at 2411b022 (2026-04).
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.nanotron.flags import FLAGS
from tracer.frameworks.nanotron.mesh import read, write
from tracer.frameworks.nanotron.model import MODEL_FLAGS, model_of_config
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework

FRAMEWORK = Framework(
    "nanotron",
    "nanotron",
    (*FLAGS, *MODEL_FLAGS),
    Dialect(underscores=True, attached=False),
    read,
    others=read_other_flags(__name__),
    write=write,
    sizes_model=model_of_config,
)
