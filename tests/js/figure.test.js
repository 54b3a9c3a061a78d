import assert from "node:assert/strict";
import test from "node:test";
import { inInk, legendExtra, styledLayout } from "../../app/assets/core/figure.js";

const look = (name) => ({ "--ink": "#111", "--edge": "#ccc", "--page": "#fff" })[name];

test("a narrow chart grows by the rows of its legend beyond two", () => {
  const named = (count) => ({ data: Array.from({ length: count }, () => ({ name: "a" })) });
  assert.equal(legendExtra(named(4), 340), 0);
  assert.equal(legendExtra(named(5), 340), 20);
  assert.equal(legendExtra(named(5), 100), 60);
  assert.equal(legendExtra({ data: [{ name: "a", showlegend: false }, {}] }, 100), 0);
});

test("variables of the style sheet become colours, and the figure stays as it was", () => {
  const figure = { data: [{ line: { color: "var(--ink)" } }], layout: { plot: ["var(--page)", "red"] } };
  assert.deepEqual(inInk(figure, look), {
    data: [{ line: { color: "#111" } }],
    layout: { plot: ["#fff", "red"] },
  });
  assert.equal(figure.data[0].line.color, "var(--ink)");
});

test("a layout keeps what it says of axes and margins, and gets the page's colours", () => {
  const layout = {
    xaxis: { type: "log", title: { text: "FLOP/B" } },
    margin: { l: 80 },
    title: { text: "Roofline" },
  };
  const styled = styledLayout(layout, look, { family: "serif", width: 0 });
  assert.deepEqual(
    [styled.xaxis.type, styled.xaxis.gridcolor, styled.xaxis.title.text],
    ["log", "#ccc", "FLOP/B"],
  );
  assert.deepEqual(styled.margin, { l: 80, r: 16, t: 40, b: 40 });
  assert.deepEqual(styled.font, { family: "serif", size: 12, color: "#111" });
  assert.equal(styled.width, undefined);
  assert.equal(styled.legend.traceorder, undefined);
});
