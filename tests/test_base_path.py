"""The explorer below a prefix: every address that a page names lies below it."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("dash")

from app.server import create_app
from app.web.base_path import checked_base_path
from tracer.errors import ConfigError

BASE = "/tools/tokentrip"


def test_every_address_of_a_page_is_below_the_prefix() -> None:
    client = create_app(base_path=BASE).server.test_client()
    text = client.get(f"{BASE}/mesh").text
    found = [each for each in re.findall(r'(?:src|href)="([^"]+)"', text) if each != "data:,"]
    assert len(found) > 5
    assert all(each.startswith(f"{BASE}/") for each in found)
    for each in found:
        assert client.get(each).status_code == 200, each
    assert f'data-base="{BASE}/"' in text
    layout = json.dumps(client.get(f"{BASE}/_dash-layout").json)
    assert f'"{BASE}/traffic"' in layout


def test_a_proxy_may_take_the_prefix_off_or_pass_it_on() -> None:
    client = create_app(base_path=BASE + "/").server.test_client()
    for path in ("/api/trip?hop=1", "/export/trip.svg", "/healthz"):
        assert client.get(path).status_code == 200
        assert client.get(BASE + path).data == client.get(path).data
    moved = client.get(f"{BASE}?hop=4")
    assert (moved.status_code, moved.headers["Location"]) == (308, f"{BASE}/?hop=4")
    assert client.get(f"{BASE}/api/nothing").status_code == 404


@pytest.mark.parametrize("value", ["tokentrip", "/a b", "/a//b", "/../x", "http://a/b", "/a?b", "/<script>"])
def test_what_is_no_prefix_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"--base-path='.*' must be names after slashes"):
        checked_base_path(value)
