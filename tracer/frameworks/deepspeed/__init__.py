"""DeepSpeed: ``model-data-pipe``; experts by one of two rules (legacy lanes, or AutoEP folding).

Sources: ``deepspeed/runtime/pipe/topology.py``, ``deepspeed/utils/groups.py``,
``deepspeed/module_inject/auto_ep_folding.py`` and ``deepspeed/runtime/sequence_parallel``, read at
edaa7221 (2026-08).
"""

from tracer.frameworks.deepspeed.flags import FLAGS
from tracer.frameworks.deepspeed.mesh import read, write
from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework

FRAMEWORK = Framework(
    "deepspeed",
    "DeepSpeed",
    FLAGS,
    Dialect(underscores=True, scripts_add_flags=True),
    read,
    config_decides=False,
    others=read_other_flags(__name__),
    write=write,
)
