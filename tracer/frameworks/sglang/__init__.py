"""SGLang: everything inside ``--tp-size``: ``attn_tp-attn_cp-attn_dp``, ``moe_tp-moe_ep-moe_dp``, then pp.

Sources: ``sglang/srt/distributed/parallel_state.py`` (initialize_model_parallel),
``sglang/srt/arg_groups`` (parallel_hook, moe_hook, overrides, validation_hook) and ``server_args.py`` of
the 0.5.23 wheel.
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework
from tracer.frameworks.sglang.flags import FLAGS
from tracer.frameworks.sglang.mesh import read, write

FRAMEWORK = Framework(
    "sglang",
    "SGLang",
    FLAGS,
    Dialect(abbreviations=True),
    read,
    others=read_other_flags(__name__),
    write=write,
    names_model=True,
)
