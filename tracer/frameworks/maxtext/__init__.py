"""MaxText: ``ici_*`` axes inside a slice, ``dcn_*`` between slices; both along one list of mesh axes.

Sources: ``mesh_axes`` and the parallelism keys of ``src/maxtext/configs/base.yml`` (read at 000b810b), and
JAX's ``create_hybrid_device_mesh`` as it lays out devices that are no TPUs: row-major, slices slowest.
"""

from tracer.frameworks.flags import Dialect
from tracer.frameworks.maxtext.flags import FLAGS
from tracer.frameworks.maxtext.mesh import read, write
from tracer.frameworks.other_flags import read_other_flags
from tracer.frameworks.settings import Framework

FRAMEWORK = Framework(
    "maxtext",
    "MaxText",
    FLAGS,
    Dialect(underscores=True),
    read,
    others=read_other_flags(__name__),
    write=write,
)
