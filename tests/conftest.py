"""What hypothesis draws: the same in every run of ``make test``, and new inputs in ``make fuzz``.

A failure of ``make test`` is then the change's and not the draw's; what a fuzz finds becomes a test.
"""

from draws import USUAL
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

FUZZ_FACTOR = 5

settings.register_profile(
    "same", max_examples=USUAL, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz",
    max_examples=FUZZ_FACTOR * USUAL,
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")

# Some releases also draw the numbers and texts that stand in the modules loaded so far, ours included. Draws
# would then depend on which tests came before in this process, and change with any number in the engine.
if hasattr(providers, "is_local_module_file"):
    providers.is_local_module_file = lambda _path: False

# A project of its own, run from an installed wheel by test_sample_project.py.
collect_ignore = ["sample_project"]
