"""Exports read back by other readers: CSV, GraphML, DOT."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess

import networkx as nx
import pytest

import tracer
from tracer.trip.export.graph import to_dot, to_graph, to_graphml
from tracer.trip.export.mermaid import to_mermaid_sequence
from tracer.trip.export.tables import to_csv
from tracer.trip.trip import Trip, take_trip


@pytest.fixture(scope="module")
def trip() -> Trip:
    return take_trip(tracer.load_scenario("six-cuts"))


def test_csv_has_every_transfer(trip: Trip) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(trip))))
    assert sum(int(row["bytes"]) for row in rows) == trip.log.bytes
    assert sum(row["tier"] == "ib" for row in rows) == trip.log.node_crossings
    assert len({row["hop"] for row in rows}) == len(trip.hops)


def test_graphml_reads_back_equal(trip: Trip) -> None:
    back = nx.parse_graphml(to_graphml(trip), node_type=int, force_multigraph=True)
    graph = to_graph(trip)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted(map(str, back.edges(data=True))) == sorted(map(str, graph.edges(data=True)))
    assert tuple(sorted(back)) == trip.touched


def test_dot_is_read_by_graphviz(trip: Trip) -> None:
    dot = shutil.which("dot")
    if dot is None:
        missing = "Graphviz is missing: apt-get install graphviz"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    text = to_dot(trip)
    plain = subprocess.run([dot, "-Tplain"], input=text, capture_output=True, text=True, check=True).stdout
    assert sum(line.startswith("node ") for line in plain.splitlines()) == len(trip.touched)
    assert sum(line.startswith("edge ") for line in plain.splitlines()) == text.count(" -> ")


def test_sequence_has_a_message_a_transfer(trip: Trip) -> None:
    text = to_mermaid_sequence(trip)
    assert text.count("->>") + text.count("--)") == sum(len(hop.transfers) for hop in trip.hops)
