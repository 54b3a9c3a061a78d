"""What a link shows elsewhere: the social card, and the player in an iframe where the server allows it."""

from __future__ import annotations

import io
import re

import pytest
from PIL import Image

pytest.importorskip("dash")

from flask.testing import FlaskClient

from app.server import create_app

SCRIPT = "<script>alert(1)</script>"


def client(embed: bool) -> FlaskClient:
    return create_app(embed=embed).server.test_client()


def test_nothing_is_framed_unless_asked() -> None:
    off = client(embed=False)
    assert off.get("/embed").headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in off.get("/").headers["Content-Security-Policy"]
    assert "data-embed" not in off.get("/").text


def test_the_player_alone_may_be_framed() -> None:
    on = client(embed=True)
    framed = on.get("/embed?hop=4")
    assert framed.status_code == 200
    assert "X-Frame-Options" not in framed.headers
    policy = framed.headers["Content-Security-Policy"]
    assert "frame-ancestors *" in policy and "default-src 'none'" in policy
    assert '"start":4' in framed.text
    for path in ("/", "/mesh", "/api/trip", "/export/trip.svg"):
        assert on.get(path).headers["X-Frame-Options"] == "DENY", path
    assert "data-embed" in on.get("/").text


def test_a_refusal_in_a_frame_is_words_and_runs_nothing() -> None:
    refused = client(embed=True).get("/embed", query_string={"mesh.tp": SCRIPT})
    assert refused.status_code == 400
    assert "mesh.tp=" in refused.text
    assert "<script" not in refused.text


def test_a_link_to_a_trip_has_its_card() -> None:
    server = client(embed=False)
    page = server.get("/", query_string={"hop": "4", "scenario": "deepseek-v3-decode-ep144", "rows": SCRIPT})
    found = re.search(r'property="og:image" content="([^"]*)"', page.text)
    assert found is not None
    assert SCRIPT not in page.text
    card = server.get(found[1].replace("&amp;", "&").removeprefix("http://localhost"))
    with Image.open(io.BytesIO(card.data)) as image:
        assert image.size == (1200, 630)
    assert "og:image" not in server.get("/traffic").text
