"""vLLM: ``tp-pcp-pp-dp-externalDP``, with PP inside DP; EP is derived, all or nothing.

Sources: ``vllm/distributed/parallel_state.py`` (initialize_model_parallel), ``vllm/config/parallel.py``,
``vllm/config/model.py``, ``vllm/engine/arg_utils.py`` and ``fused_moe/expert_map_manager.py`` of the
0.33.0 wheel.
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework
from tracer.frameworks.vllm.flags import FLAGS
from tracer.frameworks.vllm.mesh import read, write

FRAMEWORK = Framework(
    "vllm",
    "vLLM",
    FLAGS,
    Dialect(abbreviations=True, underscores=True),
    read,
    others=read_other_flags(__name__),
    write=write,
    names_model=True,
)
