"""TensorRT-LLM: ``cp-tp-pp`` (before PR #10350 ``tp-cp-pp``), experts ``moe_ep-moe_cluster-moe_tp-pp``.

Sources: ``tensorrt_llm/mapping.py`` in both versions, ``tensorrt_llm/commands/serve.py`` (LlmArgs keys),
``tensorrt_llm/_torch/pyexecutor/dwdp.py``.
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework
from tracer.frameworks.tensorrt_llm.flags import FLAGS
from tracer.frameworks.tensorrt_llm.mesh import read, write

# trtllm-serve's --config is "a YAML file that overwrites the parameters specified by trtllm-serve".
FRAMEWORK = Framework(
    "tensorrt-llm",
    "TensorRT-LLM",
    FLAGS,
    Dialect(),
    read,
    file_wins=True,
    others=read_other_flags(__name__),
    write=write,
    names_model=True,
)
