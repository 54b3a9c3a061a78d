// A plotly figure in the page's own ink. `look(name)` gives the value of a variable of the style sheet.

const LEGEND_ENTRY_WIDTH = 170;
const LEGEND_ROWS = 2;
const LEGEND_ROW_HEIGHT = 20;

// Pixels that a narrow chart is taller: its legend stacks, and the plot keeps its height.
export function legendExtra(figure, width) {
  const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;
  const perRow = Math.max(1, Math.floor(width / LEGEND_ENTRY_WIDTH));
  return Math.max(0, Math.ceil(named / perRow) - LEGEND_ROWS) * LEGEND_ROW_HEIGHT;
}

// The figure with every "var(--name)" replaced by its colour.
export function inInk(figure, look) {
  return JSON.parse(JSON.stringify(figure).replace(/var\((--[\w-]+)\)/g, (_, name) => look(name)));
}

// The layout with the page's font, colours and margins; what the server says goes before them.
export function styledLayout(layout, look, { family, width }) {
  const [ink, edge, page] = ["--ink", "--edge", "--page"].map(look);
  const axis = {
    gridcolor: edge,
    linecolor: edge,
    zerolinecolor: edge,
    automargin: true,
    tickfont: { size: 12 },
  };
  const styledAxis = (own) => ({ ...axis, ...own, title: { font: { size: 12 }, ...own?.title } });
  const order = layout.legend?.traceorder;
  return {
    ...layout,
    xaxis: styledAxis(layout.xaxis),
    yaxis: styledAxis(layout.yaxis),
    template: null,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    dragmode: false,
    font: { family, size: 12, color: ink },
    hoverlabel: { bgcolor: page, bordercolor: edge, font: { color: ink, size: 12 } },
    margin: { l: 8, r: 16, t: layout.title?.text ? 40 : 32, b: 40, ...layout.margin },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", ...(order ? { traceorder: order } : {}) },
    title: { text: layout.title?.text, font: { size: 13 }, x: 0 },
    width: width || undefined,
  };
}
