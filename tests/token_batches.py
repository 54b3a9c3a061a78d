"""Several tokens of drawn scenarios: its own token and up to four others."""

from __future__ import annotations

from draws import draws
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from strategies import scenarios

from tracer.scenario.scenario import Scenario
from tracer.trip.trips import Trips, take_trips

FEW = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
    max_examples=draws(25),
)


@st.composite
def batches(draw: st.DrawFn) -> Trips:
    phase = draw(st.sampled_from(["prefill", "prefill", "decode"]))
    scenario = Scenario.from_dict(draw(scenarios(phase=phase)))
    replicas = st.integers(0, scenario.mesh.dp - 1)
    prompt = scenario.token.prompt
    positions = st.integers(prompt, prompt + 16) if scenario.decodes else st.integers(0, prompt - 1)
    own = (scenario.replica, scenario.position)
    names = draw(st.lists(st.tuples(replicas, positions), unique=True, max_size=5))
    return take_trips(scenario, [own, *(name for name in names if name != own)])
