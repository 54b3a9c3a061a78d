"use strict";
// A plotly chart in the page's own ink: colours named as variables of the style sheet are looked up when drawn.
(function () {
  const SOURCE = "/vendor/plotly-cartesian.min.js";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let loading = null;

  // The bundle is 1.5 MB: only a page with a chart asks for it.
  function loadPlotly() {
    loading ||= new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: SOURCE });
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => { loading = null; reject(new Error("no plotly")); };
      document.head.append(script);
    });
    return loading;
  }

  function chart(block) {
    const { dom } = window.tokentrip;
    const element = dom.make("div", { class: "chart", role: "img", "aria-label": block.name });
    element.style.height = block.height + "px";
    if (block.figure.layout.yaxis?.scaleanchor) element.style.maxHeight = "calc(100vw + 80px)";
    let gone = false;
    const draw = async () => {
      const Plotly = await loadPlotly().catch(() => null);
      if (gone) return;
      if (!Plotly) { element.textContent = "The chart could not be drawn; the table has its figures."; return; }
      element.style.height = block.height + legendExtra(block.figure, element.clientWidth) + "px";
      const figure = inInk(block.figure);
      await Plotly.react(element, figure.data, styled(figure.layout, element), { displayModeBar: false, responsive: true });
      element.classList.add("drawn");
    };
    draw();
    // A picture of the chart on the page's own ground: SVG text, or the bytes of a PNG twice as fine.
    const image = async (format) => {
      const Plotly = await loadPlotly();
      const ground = getComputedStyle(document.documentElement).getPropertyValue("--page").trim();
      const figure = { data: element.data, layout: { ...element.layout, paper_bgcolor: ground } };
      const { clientWidth: width, clientHeight: height } = element;
      const [, text] = (await Plotly.toImage(figure, { format, width, height, scale: 2 })).split(/,(.*)/s);
      return format === "svg" ? decodeURIComponent(text) : Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    };
    return { name: block.name, image, element, draw, purge: () => { gone = true; window.Plotly?.purge(element); } };
  }

  // A narrow chart stacks its legend: the plot keeps its height.
  function legendExtra(figure, width) {
    const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;
    return Math.max(0, Math.ceil(named / Math.max(1, Math.floor(width / 170))) - 2) * 20;
  }

  function inInk(figure) {
    const style = getComputedStyle(document.documentElement);
    const text = JSON.stringify(figure).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    return JSON.parse(text);
  }

  function styled(layout, element) {
    const style = getComputedStyle(document.documentElement);
    const [ink, edge, page] = ["--ink", "--edge", "--page"].map((name) => style.getPropertyValue(name).trim());
    const axis = { gridcolor: edge, linecolor: edge, zerolinecolor: edge, automargin: true, tickfont: { size: 12 } };
    const axes = Object.fromEntries(["xaxis", "yaxis"].map((name) => [name, { ...axis, ...layout[name], title: { font: { size: 12 }, ...layout[name]?.title } }]));
    return {
      ...layout, ...axes, template: null, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      hoverlabel: { bgcolor: page, bordercolor: edge, font: { color: ink, size: 12 } },
      margin: { l: 8, r: 16, t: layout.title?.text ? 40 : 32, b: 40, ...layout.margin },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", ...(layout.legend?.traceorder ? { traceorder: layout.legend.traceorder } : {}) },
      title: { text: layout.title?.text, font: { size: 13 }, x: 0 }, width: element.clientWidth || undefined,
    };
  }

  // Calls back when light turns dark or dark light.
  function watchTheme(changed) {
    new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    dark.addEventListener("change", changed);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { chart, watchTheme });
})();
