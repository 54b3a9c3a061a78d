"""Kinds of groups against every group of the mesh, wherever pp lies and however domains cut the ranks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.mesh.cluster import Cluster
from tracer.mesh.group_kinds import group_kinds, place_kinds
from tracer.mesh.mesh import Mesh

ORDERS = ("tp-cp-dp-pp", "tp-cp-pp-dp", "tp-pp-dp-cp", "pp-tp-cp-dp", "tp-dp-pp-cp")
AXES = (("tp",), ("cp",), ("dp",), ("tp", "cp"), ("cp", "dp"), ("etp", "ep"), ("edp",))
Look = tuple[tuple[int, ...], tuple[int, ...]]


@st.composite
def placed(draw: st.DrawFn) -> tuple[Mesh, Cluster]:
    """A mesh and a cluster; domains need not hold whole groups."""
    tp, cp, pp = (draw(st.sampled_from([1, 2, 3])) for _ in range(3))
    dp = draw(st.sampled_from([1, 2, 4, 6]))
    ep = draw(st.sampled_from([size for size in (1, 2, 3, 4, 6, 12) if tp * cp * dp % size == 0]))
    mesh = Mesh.build(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, order=draw(st.sampled_from(ORDERS)))
    node, world = draw(st.sampled_from([1, 2, 4, 5, 8])), mesh.world_size
    order = draw(st.none() | st.permutations(range(world)))
    placement = None if order is None else tuple(divmod(place, node) for place in order)
    cluster = Cluster(world, node, placement=placement)
    return mesh, cluster


def look(cluster: Cluster, ranks: tuple[int, ...]) -> Look:
    """A group as the forms see it: domains numbered in order of appearance, and places within them."""
    numbers: dict[int, int] = {}
    domains = (cluster.nvlink_domain_of(rank) for rank in ranks)
    return (
        tuple(numbers.setdefault(domain, len(numbers)) for domain in domains),
        tuple(cluster.index_in_nvlink_domain(rank) for rank in ranks),
    )


@settings(max_examples=150)
@given(placed(), st.sampled_from(AXES))
def test_kinds_are_all_groups_of_a_stage(case: tuple[Mesh, Cluster], axes: tuple[str, ...]) -> None:
    mesh, cluster = case
    listed = [tuple(group) for group in mesh.groups(axes).tolist()]
    for stage in range(mesh.stages):
        wanted = Counter(look(cluster, group) for group in listed if mesh.stage_of(group[0]) == stage)
        found: Counter[Look] = Counter()
        for kind in group_kinds(mesh, cluster, axes, stage):
            assert kind.ranks in listed
            found[look(cluster, kind.ranks)] += kind.count
        assert found == wanted


@settings(max_examples=150)
@given(placed())
def test_kinds_of_places_are_all_places(case: tuple[Mesh, Cluster]) -> None:
    mesh, cluster = case

    def chain(place: int) -> Look:
        """The ranks that hold a place in the stages one after the other."""
        return look(cluster, tuple(mesh.rank_in_stage(stage, place) for stage in range(mesh.stages)))

    found: Counter[Look] = Counter()
    for place, count in place_kinds(mesh, cluster).items():
        found[chain(place)] += count
    assert found == Counter(chain(place) for place in range(mesh.stage_size))


def test_a_large_mesh_has_few_kinds() -> None:
    mesh = Mesh.build(tp=8, dp=4096, pp=8, ep=256)
    cluster = Cluster(mesh.world_size)
    assert [kind.count for kind in group_kinds(mesh, cluster, ("tp",), 3)] == [4096]
    assert sum(place_kinds(mesh, cluster).values()) == mesh.stage_size
