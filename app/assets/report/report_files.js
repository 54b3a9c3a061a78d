// Files of a page of figures: all of it as JSON, its tables as CSV, its charts as pictures, its times as a trace.

import { formatQuery, omit } from "../core/address.js";
import { baseName, csvText, jsonText, slug } from "../core/files.js";
import { fetchJson } from "../shell/fetch.js";

export function reportFiles(page) {
  const base = page.data.texts ? page.name : baseName(page.query, page.name);
  const { traces = [], texts = [], blocks } = page.data;
  const data = { page: page.name, query: page.query, ...omit(omit(page.data, "traces"), "texts") };
  return [
    { name: base + ".json", content: () => jsonText(data) },
    ...blocks.flatMap((block) => tableFiles(base, block)),
    ...page.charts.flatMap((chart) => chartFiles(base, chart)),
    ...texts.map(({ ending, text }) => ({ name: base + ending, content: () => text })),
    ...traces.map((trace) => ({
      name: base + trace.ending,
      content: () => traceText(trace.from, page.query),
    })),
  ];
}

function tableFiles(base, block) {
  const name = base + "-" + slug(block.caption || block.name || "") + ".csv";
  if (block.kind === "table") return [{ name, content: () => csvText(block.heads, block.rows) }];
  if (block.kind === "counts") return [{ name, content: () => csvText(["", "value"], block.rows) }];
  return [];
}

function chartFiles(base, chart) {
  return ["svg", "png"].map((format) => ({
    name: base + "-" + slug(chart.name) + "." + format,
    content: () => chart.image(format),
  }));
}

async function traceText(address, query) {
  const found = await fetchJson(address + formatQuery(query));
  if (found.error) throw new Error(found.error.text);
  return jsonText(found);
}
