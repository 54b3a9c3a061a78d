"""Hardware presets: figures, sources, and refusal where a figure is unknown."""

from __future__ import annotations

import json

import pytest

from tracer.errors import ConfigError
from tracer.mesh.cluster import Cluster
from tracer.mesh.hardware import Hardware, hardware_preset, hardware_preset_names
from tracer.scenario.scenario import BareScenario

PLAIN: dict[str, object] = {
    "name": "X",
    "gpus_per_node": 4,
    "gpus_per_nvlink_domain": 8,
    "source": "illustrative",
}


def test_the_presets_that_ship() -> None:
    assert set(hardware_preset_names()) >= {"h100", "h800", "h200", "b200", "gb200-nvl72"}


@pytest.mark.parametrize("name", hardware_preset_names())
def test_every_preset_states_its_source_and_round_trips(name: str) -> None:
    hardware = hardware_preset(name)
    assert len(hardware.source) > 20
    assert Hardware.from_dict(json.loads(json.dumps(hardware.to_dict()))) == hardware
    assert hardware_preset(name.upper()) == hardware


@pytest.mark.parametrize(
    ("name", "nvlink", "ib", "hbm", "bf16", "nvlink_domain"),
    [
        ("h100", 450e9, 50e9, 3.35e12, 989e12, 8),
        ("h200", 450e9, 50e9, 4.8e12, 989e12, 8),
        ("b200", 900e9, 100e9, 7.7e12, 2250e12, 8),
        ("gb200-nvl72", 900e9, 100e9, 8e12, 2500e12, 72),
    ],
)
def test_figures(name: str, nvlink: float, ib: float, hbm: float, bf16: float, nvlink_domain: int) -> None:
    hardware = hardware_preset(name)
    assert (hardware.nvlink_bytes_per_s, hardware.ib_bytes_per_s, hardware.hbm_bytes_per_s) == (
        nvlink,
        ib,
        hbm,
    )
    assert (hardware.need("bf16_flops"), hardware.gpus_per_nvlink_domain) == (bf16, nvlink_domain)


def test_figures_of_the_presets_that_were_completed() -> None:
    """Each by the source that it names."""
    h800, a100, small = (hardware_preset(name) for name in ("h800", "a100", "a100-40gb"))
    assert (h800.bf16_flops, h800.hbm_bytes_per_s) == (990e12, 3.35e12)
    assert (a100.hbm_bytes, small.hbm_bytes, small.hbm_bytes_per_s) == (80 * 10**9, 40 * 10**9, 1555e9)
    assert hardware_preset("h20").hbm_bytes == 96 * 10**9
    assert hardware_preset("l40s").nvlink_bytes_per_s == 32e9
    domains = [hardware_preset(name).gpus_per_nvlink_domain for name in ("tpu-v5p", "tpu-v6e", "tpu-v7")]
    assert domains == [8960, 256, 9216]


def cluster_of(**cluster: object) -> Cluster:
    """The cluster of a scenario of 8 ranks."""
    return BareScenario.from_dict({"mesh": {"tp": 8}, "cluster": cluster}).cluster


def test_figures_stated_by_hand_go_before_the_hardwares_own() -> None:
    stated = {
        "hbm_bytes": 60e9,
        "hbm_bytes_per_s": 3e12,
        "bf16_flops": 5e14,
        "fp8_flops": 1e15,
        "fp4_flops": 2e15,
    }
    named, alone = cluster_of(hardware="h100", **stated).gpu, cluster_of(**stated).gpu
    assert named is not None
    assert alone is not None
    for name, value in stated.items():
        assert getattr(named, name) == getattr(alone, name) == value
    assert (named.name, named.nvlink_bytes_per_s) == ("H100 SXM", 450e9)
    assert cluster_of().gpu is None
    one = cluster_of(hardware="h100", bf16_flops=9e14).gpu
    assert one is not None
    assert (one.bf16_flops, one.fp8_flops, one.hbm_bytes) == (9e14, 1978e12, 85899345920)


def test_figures_stated_by_hand_are_saved() -> None:
    scenario = BareScenario.from_dict({"mesh": {"tp": 8}, "cluster": {"hardware": "a100", "hbm_bytes": 80e9}})
    assert BareScenario.from_toml(scenario.to_toml()) == scenario
    table = scenario.to_dict()["cluster"]
    assert (table["hbm_bytes"], table["bf16_flops"]) == (80 * 10**9, None)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"hbm_bytes": 0}, r"cluster\.hbm_bytes=0 must be a whole number"),
        ({"hbm_bytes": 1.5}, r"cluster\.hbm_bytes=1\.5 must be a whole number"),
        ({"hbm_bytes": "80GB"}, r"cluster\.hbm_bytes='80GB' must be"),
        ({"bf16_flops": -1}, r"cluster\.bf16_flops=-1 must be"),
        ({"fp8_flops": True}, r"cluster\.fp8_flops=True must be"),
        ({"hbm_bytes_per_s": float("inf")}, r"cluster\.hbm_bytes_per_s=inf must be"),
        (
            {"hardware": "mi300x", "nodes_per_island": 1, "gpus_per_node": 1},
            r"cluster\.ib_bytes_per_s is not given and is .*--set cluster\.ib_bytes_per_s=",
        ),
    ],
)
def test_bad_figures_name_their_key(cluster: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        cluster_of(**cluster)


def test_links_that_no_source_states_are_stated_by_hand() -> None:
    """InfiniBand is asked for only where ranks are on several domains."""
    found = cluster_of(hardware="mi300x", nvlink_bytes_per_s=64e9)
    assert (found.nvlink.bytes_per_s, found.nvlink_domains) == (64e9, 1)
    assert cluster_of(hardware="mi300x").nvlink.bytes_per_s == 448e9
    with pytest.raises(
        ConfigError, match=r"cluster\.ib_bytes_per_s is not given and is needed to lay out the cluster's"
    ):
        cluster_of(hardware="gb300-nvl72", nodes_per_island=1)


def test_an_nvl72_island_is_18_nodes() -> None:
    assert hardware_preset("gb200-nvl72").nodes_per_island == 18
    assert hardware_preset("h100").nodes_per_island == 1


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("h800", "fp4_flops"),
        ("mi350x", "bf16_flops"),
        ("tpu-v7", "ib_bytes_per_s"),
        ("l40s", "ib_bytes_per_s"),
        ("mi300x", "fp4_flops"),
        ("gb300-nvl72", "ib_bytes_per_s"),
    ],
)
def test_an_unknown_figure_is_refused_where_it_is_needed(name: str, figure: str) -> None:
    said = (
        rf"cluster.{figure} is not given and is needed to draw a roof, and no source was seen "
        rf".*--set cluster.{figure}="
    )
    with pytest.raises(ConfigError, match=said):
        hardware_preset(name).need(figure, "draw a roof")


def test_a_figure_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match=r"'bf61_flops' is not a figure of a GPU; .* 'bf16_flops'"):
        hardware_preset("h100").need("bf61_flops")


@pytest.mark.parametrize("name", ["h1000", "", "../hardware", None, 3])
def test_hardware_that_does_not_ship(name: object) -> None:
    with pytest.raises(ConfigError, match=r"cluster.hardware(=.*)? is not hardware that ships"):
        hardware_preset(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus_per_node": 0}, "hardware.gpus_per_node=0 must be a whole number"),
        ({"gpus_per_nvlink_domain": 6}, "gpus_per_nvlink_domain=6 must be whole nodes of 4 GPUs; try 4"),
        ({"bf16_flops": -1.0}, "hardware.bf16_flops=-1.0 must be a number above 0"),
        ({"bf16_flops": float("nan")}, "hardware.bf16_flops=nan must be a number above 0"),
        ({"bf16_flops": True}, "hardware.bf16_flops=True must be a number above 0"),
        ({"ib_bytes_per_s": "50e9"}, "hardware.ib_bytes_per_s='50e9' must be a number above 0"),
        ({"ib_bytes_per_s": 10**400}, "hardware.ib_bytes_per_s=.* must be a number above 0"),
        ({"hbm_bytes": 1.5}, "hardware.hbm_bytes=1.5 must be a whole number"),
        ({"source": ""}, "hardware.source='' must be a text that is not blank"),
        ({"source": None}, "hardware.source is not given and is needed to describe a GPU"),
        ({"nvlink": 1}, "hardware.nvlink=1 is not a known key; did you mean 'nvlink_bytes_per_s'"),
    ],
)
def test_every_rule_names_its_field(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Hardware.from_dict(PLAIN | change)


def test_whole_number_rates_become_floats() -> None:
    assert isinstance(Hardware.from_dict(PLAIN | {"ib_bytes_per_s": 50_000_000_000}).ib_bytes_per_s, float)
