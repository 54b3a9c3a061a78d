"""A hop's numbers, for someone who wants to see them: rows, partial attentions, router scores, layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.proof.replay.prove import execute, start
from tracer.proof.replay.sent import Place
from tracer.proof.replay.trips import token_scenario
from tracer.proof.replay.watch import Watch
from tracer.scenario.plan import Sp
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.proof.replay.run import Run
    from tracer.proof.replay.watch import AttentionNumbers, Held, HopArrays, RouterNumbers
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Hop

WHOLE, GATHERED = "[T/(cp·tp), d]", "[T/cp, d]"
LAYOUTS = {
    HopKind.LAND: ("", WHOLE),
    HopKind.ALL_GATHER: (WHOLE, GATHERED),
    HopKind.KV_EXCHANGE: ("[T/cp, n_kv/tp · (d_k + d_v)]", "[T, n_kv/tp · (d_k + d_v)]"),
    HopKind.HEADS_SCATTER: ("[T/cp, heads of a TP rank]", "[T/cp · inner, heads of a CP rank]"),
    HopKind.HEADS_GATHER: ("[T/cp · inner, outputs of a CP rank]", "[T/cp, outputs of a TP rank]"),
    HopKind.REDUCE_SCATTER: (f"{GATHERED} partial sums", WHOLE),
    HopKind.ALL_REDUCE: (f"{GATHERED} partial sums", f"{GATHERED} on every TP rank"),
    HopKind.DISPATCH: (WHOLE, "[rows that picked its experts or are relayed, d]"),
    HopKind.COMBINE: ("[rows it ran, d] weighted sums", WHOLE),
    HopKind.PP_SEND: (WHOLE, WHOLE),
    HopKind.HEAD_COPY: ("[1, d]", "[1, d] on every TP rank"),
    HopKind.LOGITS_GATHER: ("[1, V/tp]", "[1, V] at home"),
    HopKind.WEIGHT_GATHER: ("1/shards of a unit", "the whole unit"),
    HopKind.WEIGHT_PULL: ("E/ep experts", "all E experts"),
}
"""Layout of a rank's tensor before and after a hop, with SP; see :func:`layout_of`."""
LATENT_KV = ("[T/cp, kv_lora + rope]", "[T, kv_lora + rope]")


@dataclass(frozen=True, slots=True)
class HopNumbers:
    """One hop of the trip with the token's rows around it.

    ``scene`` is None where the token's own data does not move (pulled weights). ``before`` and
    ``after`` are layouts in words; shapes are in the scene's states.
    """

    index: int
    hop: Hop
    scene: HopArrays | None
    before: str
    after: str

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON values; ``states`` are before, after each step, and so after."""
        states = [] if self.scene is None else [[_held(h) for h in state] for state in self.scene.states]
        return {
            "index": self.index,
            "layer": self.hop.layer,
            "part": str(self.hop.part),
            "kind": str(self.hop.kind),
            "tensor": None if self.scene is None else self.scene.tensor,
            "layout_before": self.before,
            "layout_after": self.after,
            "states": states,
        }


@dataclass(frozen=True, slots=True)
class Look:
    """Everything a watched token went through.

    ``scenario`` follows it in the model that was run, with the picks of that model's routers; ``hops``
    are those of its trip, index for index.
    """

    scenario: Scenario
    hops: tuple[HopNumbers, ...]
    attentions: tuple[AttentionNumbers, ...]
    routers: tuple[RouterNumbers, ...]

    def attention_of(self, layer: int) -> tuple[AttentionNumbers, ...]:
        """The token's partial attentions in a layer, one entry for each TP rank."""
        return tuple(each for each in self.attentions if each.layer == layer)

    def router_of(self, layer: int) -> tuple[RouterNumbers, ...]:
        """The token's routing in a layer, one entry for each GPU that routes it."""
        return tuple(each for each in self.routers if each.layer == layer)

    def layouts_of(self, layer: int) -> tuple[tuple[str, str, str], ...]:
        """(hop, layout before, layout after) of every hop of a layer: its two layouts at a glance."""
        hops = (each for each in self.hops if each.hop.layer == layer)
        return tuple((str(each.hop.kind), each.before, each.after) for each in hops)

    def relay_sums(self, layer: int) -> tuple[Held, ...]:
        """What each relay had summed when it sent its NVLink domain's copy home, in a layer's combine."""
        for each in self.hops:
            if each.hop.kind is HopKind.COMBINE and each.hop.layer == layer and each.scene is not None:
                relays = {transfer.src for transfer in each.hop.transfers if transfer.role == "sum"}
                return tuple(held for held in each.scene.states[-1] if held.rank in relays)
        return ()


def look(
    scenario: Scenario, *, tiny: bool = True, seed: int = 0, prompts: Sequence[int] | None = None
) -> Look:
    """Replay a scenario and watch its token.

    Raises:
        ConfigError: as :func:`tracer.proof.replay.prove.replay`, or when its replica's prompt is too short.
    """
    watch = Watch(token=-1)
    run = start(scenario, tiny=tiny, seed=seed, prompts=prompts, watch=watch)
    _check_followed(run)
    watch.token = run.batch.id_of(run.scenario.replica, run.scenario.position)
    execute(run)
    followed = token_scenario(run, run.batch.row_of(watch.token))
    trip = take_trip(followed)
    numbers = tuple(_numbers(followed, index, hop, watch) for index, hop in enumerate(trip.hops))
    return Look(followed, numbers, tuple(watch.attentions), tuple(watch.routers))


def _check_followed(run: Run) -> None:
    position, prompt = run.scenario.position, run.batch.prompts[run.scenario.replica]
    if position >= prompt:
        raise ConfigError(
            "token.position",
            position,
            f"must lie in its replica's prompt of {prompt}",
            "follow another token, or give that replica a longer prompt",
        )


def _numbers(scenario: Scenario, index: int, hop: Hop, watch: Watch) -> HopNumbers:
    scene = watch.scenes.get(Place(hop.layer, hop.part, hop.kind))
    return HopNumbers(index, hop, scene, *layout_of(scenario, hop.kind))


def layout_of(scenario: Scenario, kind: HopKind) -> tuple[str, str]:
    """A rank's tensor before and after a kind of hop, in symbols; without SP it holds T/cp rows."""
    before, after = LAYOUTS.get(kind, ("", ""))
    if kind is HopKind.KV_EXCHANGE and scenario.model.mla:
        before, after = LATENT_KV
    if scenario.plan.sp is Sp.OFF:
        before, after = before.replace(WHOLE, GATHERED), after.replace(WHOLE, GATHERED)
    return before, after


def _held(held: Held) -> dict[str, Any]:
    return {"rank": held.rank, "values": held.values.tolist(), "shape": list(held.shape)}
