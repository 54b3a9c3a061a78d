"""A trip follows recorded picks: of vLLM's and SGLang's responses, of rollouts, of plain arrays."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from app.commands.trip import trip_command
from app.server import create_server
from tracer import ConfigError, load_scenario, take_trip
from tracer.batch.picks.files import read_picks, read_requests
from tracer.batch.picks.recording import follow_recording, with_length
from tracer.batch.picks.source import InMemory

SIX = load_scenario("six-cuts")
DEEP = load_scenario("deepseek-v3-prefill-ep32")
ROWS = np.argsort(np.random.default_rng(2).random((20, 8, 32)), axis=2)[:, :, :2]
WORDS = [f" word{place}" for place in range(6)]


def npy_text(array: Any) -> str:
    file = io.BytesIO()
    np.save(file, array)
    return base64.b64encode(file.getvalue()).decode()


def vllm(**extra: Any) -> dict[str, Any]:
    choice = {
        "routed_experts": npy_text(ROWS.astype(np.uint8)),
        "logprobs": {"content": [{"token": word} for word in WORDS]},
    }
    return {"choices": [choice], "prompt_token_ids": list(range(100, 115)), **extra}


def sglang() -> dict[str, Any]:
    meta = {
        "routed_experts": base64.b64encode(ROWS.astype("<i4").tobytes()).decode(),
        "prompt_tokens": 15,
        "input_token_logprobs": [[None, 7, " first"], *([[-1.0, 8, None]] * 14)],
        "output_token_logprobs": [[-0.1, 9, word] for word in WORDS],
    }
    return {"text": "".join(WORDS), "meta_info": meta}


def old_vllm() -> dict[str, Any]:
    choices = [{"routed_experts": ROWS[15:].tolist(), "token_ids": [1, 2, 3, 4, 5]}] * 2
    return {"prompt_routed_experts": ROWS[:15].tolist(), "choices": choices}


def rollout() -> dict[str, Any]:
    both = [ROWS[:9].tolist(), ROWS.tolist()]
    return {"rollout_routed_experts": both, "tokens": [[*range(10)], [*range(21)]]}


def sent(value: Any, name: str = "picks.json") -> InMemory:
    return InMemory(name, json.dumps(value).encode())


def experts(position: int) -> dict[int, tuple[int, ...]]:
    return {layer: tuple(ROWS[position, layer - 1].tolist()) for layer in range(1, 9)}


@pytest.mark.parametrize(
    ("value", "request_number", "tokens", "word"),
    [
        (vllm(), 0, 21, " word2"),
        (sglang(), 0, 21, " word2"),
        (old_vllm(), 1, 20, "id 3"),
        (rollout(), 1, 21, "id 17"),
        ({"routed_experts": ROWS.tolist(), "tokens": ["x"] * 20}, 0, 20, "x"),
        ({"picks": ROWS.transpose(1, 0, 2).tolist()}, 0, 20, None),
        (ROWS.tolist(), 0, 20, None),
    ],
    ids=["vllm", "sglang", "vllm-lists", "rollout", "one-sample", "layers-first", "tokens-first"],
)
def test_every_form_gives_the_token_its_row(
    value: Any, request_number: int, tokens: int, word: str | None
) -> None:
    request = read_requests(sent(value), SIX.model)[request_number]
    assert (request.tokens, request.word(17)) == (tokens, word)
    assert request.picks_at(17, SIX.model) == experts(17)


def test_the_trip_goes_where_the_picks_send_it() -> None:
    request = read_requests(sent(vllm()), SIX.model)[0]
    followed = follow_recording(with_length(SIX, request, position=17), request)
    trip = take_trip(followed)
    for layer in (1, 8):
        dispatch = next(hop for hop in trip.hops if hop.layer == layer and hop.kind == "dispatch")
        named = SIX.with_token(position=17, prompt=21).with_(picks=tuple(experts(17).items()))
        same = next(hop for hop in take_trip(named).hops if hop.layer == layer and hop.kind == "dispatch")
        assert dispatch.transfers == same.transfers
    assert "token 17 ' word2' of 21, replica 2" in str(trip)
    assert "drawn" not in str(trip)
    assert followed.with_token(position=3).token.text is None


def test_requests_of_a_census_follow_each_other_and_count_a_prompt_once() -> None:
    assert read_picks(sent(rollout()), SIX.model).tokens == 29
    assert read_picks(sent(old_vllm()), SIX.model).tokens == 25
    assert (read_picks(sent(vllm()), SIX.model).read(0, 0, 20) == ROWS[:, 0]).all()


def test_layers_of_a_model_with_dense_ones_are_found() -> None:
    rows = np.argsort(np.random.default_rng(4).random((3, 61, 256)), axis=2)[:, :, :8]
    whole = read_requests(sent({"routed_experts": rows.tolist()}), DEEP.model)[0]
    moe = read_requests(sent({"routed_experts": rows[:, 3:].tolist()}), DEEP.model)[0]
    assert whole.picks_at(1, DEEP.model) == moe.picks_at(1, DEEP.model)
    assert whole.picks_at(1, DEEP.model)[4] == tuple(rows[1, 3].tolist())
    with pytest.raises(ConfigError, match="61 layers' must be one of each of the model's 8 MoE layers"):
        whole.picks_at(1, SIX.model)


def test_a_part_of_the_prompt_may_be_left_out() -> None:
    request = read_requests(sent(vllm(routed_experts_prompt_start=5)), SIX.model)[0]
    assert request.picks_at(5, SIX.model) == experts(0)
    with pytest.raises(ConfigError, match="position=4 has no recorded picks: the file has positions 5 to 24"):
        request.picks_at(4, SIX.model)


def test_the_last_sampled_token_has_no_picks_and_a_cached_one_neither() -> None:
    request = read_requests(sent(vllm()), SIX.model)[0]
    with pytest.raises(ConfigError, match="the last token that was sampled never went through the model"):
        request.picks_at(20, SIX.model)
    cached = ROWS.copy()
    cached[:4] = -1
    request = read_requests(sent({"routed_experts": cached.tolist()}), SIX.model)[0]
    with pytest.raises(ConfigError, match="was served from the prefix cache"):
        request.picks_at(3, SIX.model)


def test_an_array_that_may_be_either_way_round_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"may be \[layers, tokens, k\] or \[tokens, layers, k\].*--format"):
        read_requests(sent(ROWS[:8].tolist()), SIX.model)
    found = read_requests(sent(ROWS[:8].tolist()), SIX.model, layout="vllm")[0]
    assert found.picks_at(3, SIX.model) == experts(3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"choices": [{"text": "x"}]}, "has no routed experts"),
        ({"meta_info": {"id": "a"}}, r"meta_info\.routed_experts is not given and must be base64 text"),
        ({"choices": [{"routed_experts": "k05VTVBZ@"}]}, "is not base64"),
        ({"choices": [{"routed_experts": "k05VTVBZAQA="}]}, "cannot be read"),
        ({"what": 1}, "has no routed experts"),
        ({"routed_experts": [[[1.5]]]}, "must be integers"),
    ],
)
def test_what_holds_no_picks_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_requests(sent(value), SIX.model)


def test_the_command_follows_a_file(tmp_path: Path) -> None:
    path = tmp_path / "response.json"
    path.write_text(json.dumps(vllm()))
    done = CliRunner().invoke(trip_command, ["six-cuts", "--picks", str(path), "--position", "17", "--json"])
    assert done.exit_code == 0, done.output
    trip = json.loads(done.output)
    assert trip["token"]["position"] == 17
    assert (trip["scenario"]["token"]["text"], trip["scenario"]["token"]["prompt"]) == (" word2", 21)
    assert trip["scenario"]["picks"]["8"] == list(experts(17)[8])
    several = CliRunner().invoke(trip_command, ["six-cuts", "--picks", str(path), "--tokens", "3,17"])
    assert several.exit_code == 0, several.output
    assert "picks as recorded in response.json, request 0" in several.output
    decode = ["six-cuts", "--phase", "decode", "--picks", str(path), "--position", "17"]
    assert "new token 17 ' word2' after a prompt of 17" in CliRunner().invoke(trip_command, decode).output
    for options, message in (
        (("--position", "21"), "is not among the 21 tokens"),
        (("--request", "1"), "the file holds 1"),
    ):
        refused = CliRunner().invoke(trip_command, ["six-cuts", "--picks", str(path), *options])
        assert message in str(refused.exception)


def test_the_explorer_takes_the_file_and_follows_it() -> None:
    client = create_server().test_client()
    address = "scenario%3Dsix-cuts%26token.position%3D17"
    answer = client.post(f"/api/upload?name=r.json&address={address}", data=json.dumps(vllm())).get_json()
    keys = answer["keys"]
    assert (keys["token.position"], keys["token.text"], keys["token.prompt"]) == ("17", " word2", "21")
    assert json.loads(keys["picks.8"]) == list(experts(17)[8])
    scene = client.get("/api/trip", query_string=keys).get_json()
    assert "error" not in scene
    assert "Position 17, ' word2', of a prompt of 21" in json.dumps(scene)


def test_words_stand_where_the_prompt_ends_also_without_its_ids() -> None:
    value = vllm(usage={"prompt_tokens": 15})
    del value["prompt_token_ids"]
    request = read_requests(sent(value), SIX.model)[0]
    assert (request.prompt, request.word(14), request.word(15)) == (15, None, " word0")
    del value["usage"]
    unknown = read_requests(sent(value), SIX.model)[0]
    assert (unknown.prompt, unknown.words) == (None, ())
    old = read_requests(sent(old_vllm()), SIX.model)[1]
    assert (old.prompt, old.word(2), old.word(17)) == (15, None, "id 3")


def test_a_decoded_token_followed_in_a_prefill_is_said(tmp_path: Path) -> None:
    file = tmp_path / "response.json"
    file.write_text(json.dumps(vllm()))
    ask = ["six-cuts", "--picks", str(file), "--position"]
    run = CliRunner().invoke
    assert "note: the prompt had 15 tokens, so this one was decoded" in run(trip_command, [*ask, "17"]).output
    assert "was decoded" not in run(trip_command, [*ask, "14"]).output
    assert "was decoded" not in run(trip_command, [*ask, "17", "--phase", "decode"]).output


def test_sglang_may_leave_out_the_start_of_the_prompt() -> None:
    value = sglang()
    value["meta_info"]["completion_tokens"] = 6
    assert read_requests(sent(value), SIX.model)[0].first == 0
    rest = base64.b64encode(ROWS[4:].astype("<i4").tobytes()).decode()
    value["meta_info"]["routed_experts"] = rest
    request = read_requests(sent(value), SIX.model)[0]
    assert (request.first, request.tokens, request.word(17)) == (4, 21, " word2")
    assert request.picks_at(17, SIX.model) == experts(17)
