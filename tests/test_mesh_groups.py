"""Groups that go through the expert view: members, bounds and lists, against their coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.errors import ConfigError
from tracer.mesh.mesh import Mesh

MESH = Mesh.build(tp=2, dp=4, pp=2, ep=4, etp=2, expert_order="ep-etp-edp")
SETS = [("ep",), ("etp",), ("ep", "etp"), ("ep", "pp"), ("etp", "pp"), ("pp", "ep", "etp")]


def members(rank: int, axes: tuple[str, ...]) -> list[int]:
    """Ranks that share every coordinate of the expert view, and the stage, but those along the axes."""
    kept = [name for name in ("etp", "ep", "edp", "pp") if name not in axes]
    at = MESH.coordinates(rank)
    everyone = range(MESH.world_size)
    return [each for each in everyone if all(MESH.coordinates(each)[name] == at[name] for name in kept)]


@pytest.mark.parametrize("axes", SETS, ids="-".join)
def test_a_group_is_who_shares_the_other_coordinates(axes: tuple[str, ...]) -> None:
    for rank in (0, 5, 15):
        group, wanted = MESH.group(rank, axes), members(rank, axes)
        assert sorted(group) == wanted
        assert len(group) == len(wanted)
        assert [group[index] for index in range(len(group))] == list(group)
        for outside in (-1, len(group)):
            with pytest.raises(IndexError, match="out of range"):
                group[outside]
        assert [each for each in range(-2, MESH.world_size + 2) if each in group] == wanted
        assert "0" not in group
        assert None not in group


@pytest.mark.parametrize("axes", SETS, ids="-".join)
def test_all_groups_are_every_ranks_own(axes: tuple[str, ...]) -> None:
    listed = {tuple(sorted(group)) for group in MESH.groups(axes).tolist()}
    assert listed == {tuple(members(rank, axes)) for rank in range(MESH.world_size)}
    assert MESH.groups(axes).size == MESH.world_size


def test_expert_coordinates_lead_back_to_the_rank() -> None:
    for rank in range(MESH.world_size):
        at = MESH.coordinates(rank)
        assert MESH.expert_rank(at["pp"], etp=at["etp"], ep=at["ep"], edp=at["edp"]) == rank


def test_coordinates_of_many_ranks_are_those_of_each() -> None:
    for order in ("tp-cp-dp-pp", "tp-pp-cp-dp", "pp-dp-tp-cp"):
        mesh = Mesh.build(tp=2, cp=2, dp=6, pp=3, ep=4, etp=2, order=order)
        ranks = np.arange(mesh.world_size).reshape(3, -1)
        found = mesh.coordinates_of(ranks)
        for rank in range(mesh.world_size):
            at = mesh.coordinates(rank)
            assert {name: int(found[name].reshape(-1)[rank]) for name in found} == at
            assert all(values.shape == ranks.shape for values in found.values())


def test_only_strict_expert_orders_may_name_pp() -> None:
    assert Mesh.build(tp=2, dp=2, pp=2, ep=4, expert_order="etp-ep-edp-pp", strict="megatron").stages == 2
    with pytest.raises(ConfigError, match=r"mesh\.expert_order"):
        Mesh.build(tp=2, dp=2, pp=2, ep=4, expert_order="etp-ep-edp-pp")


def test_a_notebook_shows_the_first_sixteen_of_a_group() -> None:
    shown = Mesh.build(dp=20)._repr_mimebundle_()["text/html"]
    assert " ".join(map(str, range(16))) + "<" in shown
