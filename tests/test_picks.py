"""Drawn and recorded picks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.batch.picks.averaging import averaging_curve
from tracer.batch.picks.draws import DRAW_BLOCK, DrawnPicks, popularity_of
from tracer.batch.picks.files import read_picks, read_sources
from tracer.batch.picks.inclusion import inclusion_probabilities
from tracer.batch.picks.recorded import from_megatron, from_router_logits, from_sglang, from_vllm
from tracer.errors import ConfigError
from tracer.model.spec import ModelSpec

TOY = ModelSpec(layers=3, experts=8, top_k=2, dense_layers=1)
SKEWED = np.array([0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])


def exact_top2(weights: np.ndarray) -> np.ndarray:
    """Two picks one after the other: p_i + Σ_j p_j p_i / (1 - p_j)."""
    shares = weights / weights.sum()
    return np.array(
        [
            p + sum(q * p / (1 - q) for j, q in enumerate(shares) if j != i and q < 1)
            for i, p in enumerate(shares)
        ]
    )


@given(st.lists(st.floats(0.01, 50), min_size=3, max_size=12))
def test_inclusion_is_exact_for_two_picks(weights: list[float]) -> None:
    found = inclusion_probabilities(np.array(weights), 2)
    assert found == pytest.approx(exact_top2(np.array(weights)), rel=1e-7)


def test_the_source_article_multiplied_where_it_should_have_excluded() -> None:
    """Naive p·k is 0.4 and 0.2; without repeats it is 0.3833 and 0.2056."""
    found = inclusion_probabilities(SKEWED, 2)
    assert found[[0, 7]].round(4).tolist() == [0.3833, 0.2056]
    assert (4096 * found[[0, 7]]).round().tolist() == [1570.0, 842.0]


@pytest.mark.parametrize(
    ("kind", "experts", "top_k", "skew"),
    [("uniform", 64, 6, 1.0), ("zipf", 64, 6, 1.2), ("hot", 32, 4, 500.0), ("zipf", 256, 8, 0.7)],
)
def test_draws_include_experts_as_often_as_they_should(
    kind: str, experts: int, top_k: int, skew: float
) -> None:
    weights = popularity_of(kind, experts, skew=skew)
    tokens = 60_000
    drawn = DrawnPicks(1, tokens, top_k, experts, popularity=weights, seed=11).read(0, 0, tokens)
    assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
    share = np.bincount(drawn.ravel(), minlength=experts) / tokens
    expected = inclusion_probabilities(np.ones(experts) if weights is None else weights, top_k)
    assert (np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / tokens) + 1e-9).all()


def test_draws_do_not_depend_on_the_block_they_are_read_in() -> None:
    picks = DrawnPicks(2, 3 * DRAW_BLOCK, 2, 8, sticky=0.5)
    whole = picks.read(1, 0, 3 * DRAW_BLOCK)
    part = picks.read(1, DRAW_BLOCK - 5, 2 * DRAW_BLOCK + 7)
    assert (whole[DRAW_BLOCK - 5 : 2 * DRAW_BLOCK + 7] == part).all()


def test_group_limited_draws_stay_in_their_groups() -> None:
    picks = DrawnPicks(1, 500, 8, 256, groups=8, kept=4).read(0, 0, 500)
    assert max(len(set(row // 32)) for row in picks) <= 4
    assert len({int(expert) for expert in picks.ravel()}) > 200


def test_sticky_tokens_keep_the_shares_and_repeat_their_neighbours() -> None:
    tokens = 100_000
    drawn = DrawnPicks(1, tokens, 2, 8, sticky=0.75).read(0, 0, tokens)
    assert float((drawn[1:] == drawn[:-1]).all(1).mean()) == pytest.approx(0.75, abs=0.02)
    assert np.bincount(drawn.ravel()) / tokens == pytest.approx(np.full(8, 0.25), rel=0.05)


def test_more_experts_a_gpu_average_the_load() -> None:
    """002's skew on one expert a GPU: ratio of means 1.533, expected max/mean about 1.553."""
    curve = averaging_curve(DrawnPicks(60, 4096, 2, 8, popularity=SKEWED, seed=3))
    assert [point.experts_per_gpu for point in curve] == [4, 2, 1]
    last = curve[-1]
    assert last.of_means == pytest.approx(1.5333, abs=1e-4)
    assert last.max_over_mean == pytest.approx(1.553, abs=5 * last.standard_error + 0.001)
    flat = averaging_curve(DrawnPicks(20, 4096, 8, 256))
    ratios = [point.max_over_mean for point in flat]
    assert ratios == sorted(ratios)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"top_k": 9}, "top_k=9 must be at most the 8 experts"),
        ({"sticky": 1.0}, "sticky=1.0 must be from 0 to below 1"),
        ({"popularity": np.array([1.0] + [0.0] * 7)}, "must leave at least top_k = 2 experts above 0"),
        ({"popularity": np.array([1.0, np.nan] * 4)}, "must be numbers of 0 or more"),
        ({"tokens": 0}, "tokens=0 must be a whole number of at least 1"),
    ],
)
def test_draws_that_cannot_be(changed: dict[str, Any], words: str) -> None:
    sizes: dict[str, Any] = {"layers": 1, "tokens": 4, "top_k": 2, "experts": 8}
    with pytest.raises(ConfigError, match=words):
        DrawnPicks(**(sizes | changed))


PICKS = np.arange(2 * 5 * 2).reshape(2, 5, 2) % 8


def everything(source: Any) -> np.ndarray:
    return np.stack([source.read(layer, 0, source.tokens) for layer in range(source.layers)])


def test_npy_and_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", PICKS.astype(np.int16))
    np.save(tmp_path / "big_endian.npy", PICKS.astype(">i4"))
    np.savez(tmp_path / "a.npz", picks=PICKS)
    for name in ("a.npy", "big_endian.npy", "a.npz"):
        assert (everything(read_picks(tmp_path / name, TOY)) == PICKS).all(), name
    source = read_picks(tmp_path / "a.npy", TOY)
    assert (source.read(1, 2, 4) == PICKS[1, 2:4]).all()
    np.save(tmp_path / "ranks.npy", np.array([0, 1, 2]))
    assert read_sources(tmp_path / "ranks.npy").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([{}], object), "holds Python objects"),
        (np.asfortranarray(PICKS), "in Fortran order' must be"),
        (np.zeros((2, 2, 2, 2), int), "must be \\[layers, tokens, k\\]"),
        (np.array(["a"]), "must be integers|is not"),
    ],
)
def test_npy_that_is_no_picks(tmp_path: Path, array: np.ndarray, words: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ConfigError, match=words):
        read_picks(tmp_path / "a.npy", TOY, layout="plain")


def test_npy_cut_short(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", PICKS)
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-8])
    with pytest.raises(ConfigError, match="is cut short"):
        read_picks(tmp_path / "a.npy", TOY)
    (tmp_path / "a.npy").write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_picks(tmp_path / "a.npy", TOY)


def test_vllm(tmp_path: Path) -> None:
    recorded = PICKS.transpose(1, 0, 2).astype(np.int16).copy()
    recorded[0] = -1
    assert (from_vllm(recorded)[:, 1:] == PICKS[:, 1:]).all()
    response = {
        "prompt_routed_experts": recorded[:3].tolist(),
        "choices": [{"routed_experts": recorded[3:].tolist()}],
    }
    (tmp_path / "answer.json").write_text(json.dumps(response))
    found = everything(read_picks(tmp_path / "answer.json", TOY))
    assert (found[:, 0] == -1).all()
    assert (found[:, 1:] == PICKS[:, 1:]).all()
    with pytest.raises(ConfigError, match="has no routed experts"):
        (tmp_path / "empty.json").write_text(json.dumps({"choices": []}))
        read_picks(tmp_path / "empty.json", TOY)


def test_sglang(tmp_path: Path) -> None:
    """Every hidden layer, dense ones zero; base64 of int32 [tokens - 1, layers, k]."""
    every = np.concatenate([np.zeros((1, 5, 2), int), PICKS]).transpose(1, 0, 2)
    encoded = base64.b64encode(every.astype("<i4").tobytes()).decode()
    assert (from_sglang(encoded, 3, 2)[1:] == PICKS).all()
    (tmp_path / "answer.json").write_text(json.dumps({"meta_info": {"routed_experts": encoded}}))
    assert read_picks(tmp_path / "answer.json", TOY).layers == 3
    with pytest.raises(ConfigError, match="is no whole number of tokens of 7 layers x 2 picks"):
        from_sglang(encoded, 7, 2)
    with pytest.raises(ConfigError, match="is not base64"):
        from_sglang("@@", 3, 2)


def test_megatron() -> None:
    assert (from_megatron(list(PICKS)) == PICKS).all()
    with pytest.raises(ConfigError, match=r"recorded\[1\]=\[3, 2\] must have the shape of the first"):
        from_megatron([PICKS[0], PICKS[0][:3]])
    with pytest.raises(ConfigError, match=r"recorded\[0\]='list' is ragged"):
        from_megatron([[[1, 2], [3]]])


def test_router_logits_go_through_the_models_own_router(tmp_path: Path) -> None:
    """A learned bias changes the choice: top-k of the raw logits would be wrong."""
    model = ModelSpec(layers=1, experts=4, top_k=1, router="sigmoid_bias_topk")  # type: ignore[arg-type]
    logits = np.array([[2.0, 1.0, 0.0, -1.0]])
    bias = np.array([0.0, 0.0, 5.0, 0.0])
    assert from_router_logits([logits], model, [bias]).tolist() == [[[2]]]
    with pytest.raises(ConfigError, match="bias is not given and is needed"):
        from_router_logits([logits], model)
    np.savez(tmp_path / "logits.npz", layer_0=logits, bias=bias[None])
    assert everything(read_picks(tmp_path / "logits.npz", model)).tolist() == [[[2]]]
    plain = ModelSpec(layers=1, experts=4, top_k=2)
    assert from_router_logits([logits], plain).tolist() == [[[0, 1]]]
    with pytest.raises(ConfigError, match=r"router_logits\[0\]=\[1, 3\] must be finite numbers"):
        from_router_logits([logits[:, :3]], plain)


def test_parquet(tmp_path: Path) -> None:
    """One file a layer, numbered; row groups smaller than a read."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for layer, number in enumerate((2, 10)):
        rows = pa.array(PICKS[layer].tolist(), pa.list_(pa.int16()))
        table = pa.table({"scores": [0.5] * 5, "indices": rows})
        parquet.write_table(table, tmp_path / f"layer_{number}.parquet", row_group_size=2)
    source = read_picks(tmp_path, TOY)
    assert (source.layers, source.tokens, source.top_k) == (2, 5, 2)
    assert (everything(source) == PICKS).all()
    assert (source.read(1, 1, 4) == PICKS[1, 1:4]).all()
    with pytest.raises(ConfigError, match="column='none' is not in"):
        read_picks(tmp_path, TOY, column="none")
    ragged = pa.table({"indices": pa.array([[1, 2], [3]], pa.list_(pa.int16()))})
    parquet.write_table(ragged, tmp_path / "ragged.parquet")
    with pytest.raises(ConfigError, match=r"picks\[0, 1\]='ragged.parquet' must list 2 picks"):
        everything(read_picks(tmp_path / "ragged.parquet", TOY))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "", "has a suffix no reader knows"),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[[[1, 2], [3]]]", "is ragged"),
        ("a.json", "[[1, 2]]", "must be integers with 3 axes"),
        ("a.npz", "not a zip", "cannot be read|is not an .npz"),
        ("a.parquet", "no", "cannot be read"),
    ],
)
def test_files_that_are_no_picks(tmp_path: Path, name: str, text: str, words: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_picks(tmp_path / name, TOY)
