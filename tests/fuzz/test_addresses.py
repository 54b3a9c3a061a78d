"""Addresses: every builder of the explorer, asked with anything."""

from __future__ import annotations

from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dash")

from flask.testing import FlaskClient

from app.exports.formats import FORMATS
from app.pages import PAGE_KEYS
from app.query.address import flatten
from app.server import create_server
from app.web.api import BUILDERS
from tests.fuzz.drawn import ODD_TEXTS, inputs, scenarios_gone_wrong, spliced, texts
from tests.fuzz.judge import judged

QUICK = sorted(
    set(BUILDERS) - {"numbers", "batch", "time", "roofline", "traffic", "presets", "compare", "learn"}
)
KEYS = st.one_of(st.sampled_from(PAGE_KEYS), texts)
PAGE_VALUES = st.one_of(texts, st.sampled_from(["all", "zipf", "hot", "h100", "peak", "1,2,3,4", "relay"]))


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    """A client whose server raises what it cannot answer."""
    server = create_server()
    server.testing = True
    return server.test_client()


def ask(client: FlaskClient, address: str) -> None:
    """Every answer is 200, or a refusal that names a field."""
    answer = judged(lambda: client.get(address))
    assert answer.status_code in (200, 400), (address, answer.status_code)
    if answer.mimetype == "application/json" and isinstance(answer.json, dict) and "error" in answer.json:
        assert all(answer.json["error"][part] for part in ("field", "rule", "fix", "text"))
    else:
        assert answer.status_code == 200, address


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A scenario gone wrong, with some of the pages' own keys."""
    query = flatten(draw(scenarios_gone_wrong()))
    for _ in range(draw(st.integers(0, 2))):
        query[draw(st.sampled_from(PAGE_KEYS))] = draw(PAGE_VALUES)
    kept = sorted(query) if draw(st.booleans()) else sorted(query)[: draw(st.integers(0, 12))]
    return urlencode({key: query[key] for key in kept}, errors="replace")


@inputs(0.6)
@given(name=st.sampled_from(QUICK), query=queries())
def test_quick_pages(client: FlaskClient, name: str, query: str) -> None:
    ask(client, f"/api/{name}?{query}")


@inputs(0.1)
@given(name=st.sampled_from(sorted(BUILDERS)), query=queries())
def test_all_pages(client: FlaskClient, name: str, query: str) -> None:
    ask(client, f"/api/{name}?{query}")


@inputs(0.2)
@given(
    name=st.sampled_from(QUICK),
    data=st.data(),
    key=st.one_of(st.sampled_from(PAGE_KEYS), texts),
    value=PAGE_VALUES,
)
def test_raw_queries(client: FlaskClient, name: str, data: st.DataObject, key: str, value: str) -> None:
    whole = f"{quote_plus(key, errors='replace')}={quote_plus(value, errors='replace')}&mesh.tp=2".encode()
    raw = data.draw(spliced(whole)).decode("latin-1")
    ask(
        client,
        f"/api/{name}?" + "".join(c if 32 < ord(c) < 127 and c != "#" else f"%{ord(c):02x}" for c in raw),
    )


@inputs(0.1)
@given(ending=st.sampled_from([*FORMATS, ".svg", ".doc", ""]), stem=st.sampled_from(ODD_TEXTS), hop=texts)
def test_exports(client: FlaskClient, ending: str, stem: str, hop: str) -> None:
    name = quote_plus((stem or "x").replace("/", "_").replace("..", "_"), errors="replace")
    if ending in (".gif", ".png"):
        ending = ".mmd"
    ask(client, f"/export/{name}{ending}?hop={quote_plus(hop, errors='replace')}")
