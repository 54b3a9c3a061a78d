"""Traffic, Batch, Time, Roofline and Decode in Chromium: what they show is what the engine says."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import WIDTHS, problems_in_both_schemes
from tracer import load_scenario, take_trip
from tracer.batch.census.report import crossings_per_token, saved
from tracer.batch.census.take import take_census
from tracer.batch.eplb_scenario import rebalanced
from tracer.batch.picks.draws import DrawnPicks, popularity_of
from tracer.display import format_bytes, format_seconds
from tracer.memory.kv_owners import kv_owners
from tracer.mesh.hardware import hardware_preset
from tracer.scenario.step import with_tokens
from tracer.serving.kv_handover import kv_handover
from tracer.serving.lockstep import lockstep
from tracer.serving.phases import phase_table
from tracer.serving.pools import Pools
from tracer.timing.report import time_report
from tracer.timing.roofline import expert_points, expert_roof
from tracer.timing.schedules.training import train
from tracer.timing.weights.rendezvous import waiting_share
from tracer.traffic.contracts import compare_contracts
from tracer.traffic.orders import rank_orders, with_order
from tracer.traffic.traffic import comm_volume, traffic_rows


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query, keep_blank_values=True)


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".report.ready")).to_be_visible(timeout=120_000)


def table(page: Page, caption: str) -> Locator:
    return page.get_by_role("region", name=caption, exact=True).locator("tbody tr")


def cells(page: Page, caption: str) -> list[list[str]]:
    read = "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    found: list[list[str]] = table(page, caption).evaluate_all(read)
    return found


def figure(page: Page, label: str) -> Locator:
    return page.locator(".counter", has_text=label).locator("dd")


def expect_drawn(page: Page) -> None:
    """Every chart of the page has a name and is drawn."""
    charts = page.locator(".chart")
    expect(page.locator(".chart.drawn")).to_have_count(charts.count())
    for element in charts.all():
        assert element.get_attribute("aria-label")


def test_traffic_shows_every_axis_and_order(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic")
    scenario = load_scenario("six-cuts")
    traffic, orders = comm_volume(scenario), rank_orders(scenario)
    expect(figure(page, "over InfiniBand")).to_have_text(format_bytes(round(traffic.ib_bytes_per_pass)))
    assert [row[2:] for row in cells(page, "What each axis sends")] == [r[3:] for r in traffic_rows(traffic)]
    assert [row[1] for row in cells(page, "Every order")] == [entry.order for entry in orders.ranked]
    expect_drawn(page)


def test_two_orders_stand_beside_each_other(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic")
    page.get_by_label("Tokens a replica").fill("4096")
    page.get_by_label("Tokens a replica").press("Enter")
    expect(page.get_by_text("Sent per GPU in prefill: T = 4,096 padded tokens")).to_be_visible()
    page.get_by_label("Beside another order").select_option("tp-cp-pp-dp")
    scenario = with_tokens(load_scenario("six-cuts"), 4096)
    pair = [comm_volume(each) for each in (scenario, with_order(scenario, "tp-cp-pp-dp"))]
    shown = [format_seconds(each.seconds_per_pass) for each in pair]
    change = f"{pair[1].seconds_per_pass / pair[0].seconds_per_pass:.3g}×"
    expect(table(page, "Two orders").nth(2).locator("td")).to_have_text([*shown, change])
    assert query_of(page)["against"] == ["tp-cp-pp-dp"]
    page.reload()
    expect(table(page, "Two orders").first).to_be_visible()


def test_axes_are_swapped_and_an_order_is_used(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic")
    page.get_by_role("button", name="swap dp and pp").click()
    expect(page.get_by_role("heading", name="tp-cp-dp-pp beside tp-cp-pp-dp")).to_be_visible()
    page.get_by_role("group", name="The other order").get_by_role("button").click()
    expect(page.get_by_role("heading", name="tp-cp-pp-dp beside tp-cp-dp-pp")).to_be_visible()
    assert query_of(page)["mesh.order"] == ["tp-cp-pp-dp"]
    swapped = comm_volume(load_scenario("six-cuts-pp-inside-dp"))
    expect(figure(page, "over InfiniBand")).to_have_text(format_bytes(round(swapped.ib_bytes_per_pass)))
    page.get_by_role("button", name="Use this order, dp-tp-cp-pp").click()
    expect(page.get_by_role("heading", name="dp-tp-cp-pp beside tp-cp-pp-dp")).to_be_visible()
    marked = page.get_by_role("region", name="Every order").locator("tr.marked")
    expect(marked).to_contain_text("dp-tp-cp-pp")
    expect(marked.get_by_role("button")).to_have_count(0)
    moved = with_order(load_scenario("six-cuts"), "dp-tp-cp-pp")
    rows = compare_contracts(moved).rows()
    assert cells(page, "The MoE contracts") == [list(row) for row in rows]


def test_what_is_wrong_is_said_in_place(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic?mesh.ep=8&tokens=0")
    expect(page.get_by_role("alert")).to_contain_text("must be a whole number from 1")
    page.get_by_role("button", name="Leave out tokens").click()
    expect(page.locator(".report .place")).to_contain_text("ep8")
    open_page(page, explorer_url + "traffic?tokens=0")
    page.get_by_role("button", name="Start over").click()
    expect(figure(page, "over InfiniBand")).to_be_visible()


def test_decode_shows_what_each_axis_becomes(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "decode")
    scenario = load_scenario("six-cuts")
    told = [[row.axis.upper(), str(row.prefill), str(row.decode)] for row in phase_table(scenario).rows]
    assert cells(page, "Prefill and decode") == told
    held = kv_owners(scenario).holdings
    assert [row[0] for row in cells(page, "K/V owners")] == [f"GPU {each.rank}" for each in held]
    log = take_trip(scenario.with_phase("decode")).log
    expect(figure(page, "comm ops")).to_have_text(str(log.comm_ops))
    page.get_by_label("Load of each replica").fill("1,2,0,4")
    page.get_by_label("Load of each replica").press("Enter")
    step = lockstep(scenario.with_phase("decode"), [1, 2, 0, 4])
    expect(figure(page, "of all time is waiting")).to_have_text(f"{step.lost_share:.1%}")
    expect_drawn(page)


def test_decode_moves_the_kv_to_a_pool_of_its_own(page: Page, explorer_url: str) -> None:
    names = ("deepseek-v3-prefill-ep32", "deepseek-v3-decode-ep144")
    open_page(page, f"{explorer_url}decode?scenario={names[0]}")
    page.get_by_label("Decode on").select_option(names[1])
    moved = kv_handover(Pools.join(*(load_scenario(name) for name in names)))
    expect(figure(page, "moved").last).to_have_text(format_bytes(moved.bytes))
    expect(table(page, "The last trip")).to_have_count(min(200, len(moved.pieces)))
    arrows = page.locator(".picture g.arrow")
    expect(arrows).to_have_count(len(moved.pieces))
    assert sum(int(each.get_attribute("data-bytes") or 0) for each in arrows.all()) == moved.bytes
    saved = page.request.get(page.url.replace("/decode?", "/export/last-trip.svg?"))
    assert moved.totals in saved.text()
    assert query_of(page)["decode"] == [names[1]]
    page.get_by_label("Decode on").select_option("mixtral-8x7b-ep8")
    expect(page.locator(".report .alert")).to_contain_text("run one model in both pools")


def test_the_roofline_marks_prefill_and_decode(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "roofline")
    model = load_scenario("six-cuts").model
    page.locator("[data-key=hardware]").select_option("b200")
    roof = expert_roof(model, hardware_preset("b200"))
    expect(figure(page, "weights alone")).to_have_text(f"{roof.batch:,.0f} tokens")
    points = expert_points(model, hardware_preset("b200"), [256, 16])
    shown = [f"{point.flops_per_s / 1e12:,.4g}" for point in points]
    assert [row[4] for row in cells(page, "Batches")[:2]] == shown
    page.get_by_label("Mark a batch").fill("100000")
    page.get_by_label("Mark a batch").press("Enter")
    expect(table(page, "Batches").nth(2)).to_contain_text("compute")
    expect_drawn(page)
    page.goto(explorer_url + "roofline?scenario=llama-3.1-405b")
    expect(page.locator(".report .alert")).to_contain_text("is needed for a roofline of expert GEMMs")


def test_time_shows_the_engine_s_report(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "time?tokens=4096&micro_batches=4")
    report = time_report(load_scenario("six-cuts"), tokens=4096, micro_batches=4)
    assert report.whole and report.pipeline and report.overlap and report.choice
    expect(figure(page, "one pass of 4,096 tokens")).to_have_text(format_seconds(report.whole.seconds))
    expect(figure(page, "is bubble")).to_have_text(f"{report.pipeline.bubble:.1%}")
    expect(figure(page, "two-batch overlap")).to_have_text(f"{report.overlap.gain:+.1%}")
    checks = [[c.name, "yes" if c.holds else "no", c.why] for c in report.choice.checks]
    assert cells(page, "What speaks for moving weights") == checks
    shares = [f"{waiting_share(16, cv).share:.1%}" for cv in (0.0, 0.05, 0.1)]
    assert [row[1] for row in cells(page, "Stragglers")[:3]] == shares
    expect_drawn(page)
    page.get_by_label("Micro-batches").fill("1000")
    page.get_by_label("Micro-batches").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("from 1 to 256")


def test_time_draws_decode_and_training_pipelines(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "time?tokens=4096")
    scenario = load_scenario("six-cuts")
    report = time_report(scenario, tokens=4096)
    assert report.whole is not None
    found = train(report.whole, 8)
    assert cells(page, "DualPipe in figures")[0][1] == format_seconds(found.schedule.makespan)
    page.get_by_label("Phase").select_option("decode")
    decode = time_report(scenario.with_phase("decode"), tokens=4096).decode
    assert decode is not None
    expect(figure(page, "a token of one request")).to_have_text(format_seconds(decode.seconds_per_token))
    expect(page.get_by_role("img", name="The decode pipeline, a row per stage")).to_be_visible()
    assert query_of(page)["timed"] == ["decode"]


def test_the_batch_is_counted(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "batch?tokens=512&slots=64")
    scenario = load_scenario("six-cuts")
    picks = DrawnPicks.of_model(
        scenario.model, 512, popularity=popularity_of("zipf", 32, skew=0.5), seed=scenario.seed
    )
    census = take_census(scenario, picks)
    loads = [row[1] for row in cells(page, "Loads of experts")]
    assert loads == [f"{load:,}" for load in census.load_by_expert]
    crossings = f"{crossings_per_token(census):.3g}"
    expect(figure(page, "node crossings a token")).to_have_text(crossings)
    said = saved(census)
    assert [row[1] for row in cells(page, "Saved messages")] == [f"{said[name]:,}" for name in said]
    after = rebalanced(scenario, picks, slots=64).to_dict()["after"]
    assert cells(page, "EPLB before and after")[1][1] == f"{after['gpu_imbalance']:.4f}"
    expect_drawn(page)
    page.get_by_label("Tokens, up to").fill("70000")
    page.get_by_label("Tokens, up to").press("Enter")
    expect(page.get_by_role("button", name="Count 70,000 tokens")).to_have_count(0)
    expect(page.locator(".report")).to_contain_text("More than 65,536 tokens are counted in the background")


PAGES = [
    "numbers?hop=5",
    "traffic",
    "decode?loads=1,2,0,4",
    "roofline",
    "time",
    "model?of=deepseek-v3",
    "batch?tokens=512",
    "run",
    "run?recording=megatron-a",
]


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(page: Page, explorer_url: str, path: str) -> None:
    open_page(page, explorer_url + path)
    expect_drawn(page)
    assert problems_in_both_schemes(page) == []


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_nothing_sticks_out_and_nothing_is_small(
    page: Page, explorer_url: str, widths: tuple[int, int], path: str
) -> None:
    page.set_viewport_size({"width": widths[0], "height": 800})
    open_page(page, explorer_url + path)
    expect_drawn(page)
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(300)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0, width
        small = "[...document.querySelectorAll('.report text, .report td, .report p')]"
        small += ".filter(each => parseFloat(getComputedStyle(each).fontSize) < 12).length"
        assert page.evaluate(small) == 0, width
