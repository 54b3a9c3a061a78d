// A plotly chart in the page's own ink: colours named as variables of the style sheet are looked up when drawn.

import { inInk, legendExtra, styledLayout } from "../core/figure.js";
import { ownAddress } from "../shell/place.js";
import { make } from "../shell/dom.js";

const SOURCE = ownAddress("/vendor/plotly-cartesian.min.js");
const NOT_DRAWN = "The chart could not be drawn; the table has its figures.";
let loading = null;

// The bundle is 1.5 MB: only a page with a chart asks for it.
function loadPlotly() {
  loading ||= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: SOURCE });
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(new Error("no plotly"));
    };
    document.head.append(script);
  });
  return loading;
}

// `draw()` draws it anew, `image(format)` gives it as SVG text or PNG bytes, `purge()` ends it.
export function chart(block) {
  const element = make("div", { class: "chart", role: "img", "aria-label": block.name });
  element.style.height = block.height + "px";
  if (block.figure.layout.yaxis?.scaleanchor) element.style.maxHeight = "calc(100vw + 80px)";
  const made = {
    name: block.name,
    element,
    gone: false,
    draw: () => draw(made, block),
    image: (format) => imageOf(element, format),
    purge: () => {
      made.gone = true;
      window.Plotly?.purge(element);
    },
  };
  made.draw();
  return made;
}

async function draw(made, block) {
  const { element } = made;
  const Plotly = await loadPlotly().catch(() => null);
  // The page may have moved on while plotly came.
  if (made.gone) return;
  if (!Plotly) {
    element.textContent = NOT_DRAWN;
    return;
  }
  element.style.height = block.height + legendExtra(block.figure, element.clientWidth) + "px";
  const figure = inInk(block.figure, variable);
  const { fontFamily: family } = getComputedStyle(document.body);
  const layout = styledLayout(figure.layout, variable, { family, width: element.clientWidth });
  await Plotly.react(element, figure.data, layout, { displayModeBar: false, responsive: true });
  element.classList.add("drawn");
}

// A picture of the chart on the page's own ground: SVG text, or the bytes of a PNG twice as fine.
async function imageOf(element, format) {
  const Plotly = await loadPlotly();
  const layout = { ...element.layout, paper_bgcolor: variable("--page") };
  const { clientWidth: width, clientHeight: height } = element;
  const size = { format, width, height, scale: 2 };
  const address = await Plotly.toImage({ data: element.data, layout }, size);
  const content = address.slice(address.indexOf(",") + 1);
  if (format === "svg") return decodeURIComponent(content);
  return Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
}

// The value of a variable of the style sheet, in the theme of the moment.
function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Calls back when light turns dark or dark light.
export function watchTheme(changed) {
  const options = { attributes: true, attributeFilter: ["data-theme"] };
  new MutationObserver(changed).observe(document.documentElement, options);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
