"""How many scenarios hypothesis draws: `dev` at a desk, `ci` in CI, `fuzz` on request."""

import os

from hypothesis import HealthCheck, settings

# 100 a test, 2,000 for the comparison with the oracle (strategies.py) and for wrong input (fuzz/drawn.py).
# The same scenarios in each CI run: a failure is the change's, not the draw's.
settings.register_profile(
    "ci", max_examples=100, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("dev", max_examples=100, deadline=None)
settings.register_profile("fuzz", max_examples=10_000, deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")

# A project of its own, run from an installed wheel by test_sample_project.py.
collect_ignore = ["sample_project"]
