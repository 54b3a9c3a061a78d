"""A live trip in a notebook is a frame of the site."""

from __future__ import annotations

import pytest

import tokentrip
from tracer.errors import ConfigError


def test_a_trip_is_a_frame_with_its_scenario_and_hop() -> None:
    live = tokentrip.live_trip("six-cuts", "https://example.org/site/", hop=4)
    assert str(live) == "https://example.org/site/live/?scenario=six-cuts&hop=4"
    assert 'src="https://example.org/site/live/?scenario=six-cuts&amp;hop=4"' in live._repr_html_()


def test_a_changed_scenario_goes_along_key_by_key() -> None:
    scenario = tokentrip.load("six-cuts").with_(tp=4, cp=1)
    address = str(tokentrip.live_trip(scenario, "http://localhost:8000"))
    assert address.startswith("http://localhost:8000/live/?scenario=&")
    assert "mesh.tp=4" in address


@pytest.mark.parametrize("site", ["site/", "javascript:alert(1)", "data:text/html,x", ""])
def test_a_site_without_an_address_of_the_web_is_refused(site: str) -> None:
    with pytest.raises(ConfigError, match=r"must begin with http:// or https://"):
        tokentrip.live_trip("six-cuts", site)


def test_a_hop_before_the_first_is_refused() -> None:
    with pytest.raises(ConfigError, match="hop=-1"):
        tokentrip.live_trip("six-cuts", "https://example.org", hop=-1)
