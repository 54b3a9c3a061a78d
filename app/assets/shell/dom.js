// Small helpers that make elements.

const SVG = "http://www.w3.org/2000/svg";

// An element of the page. `text` is its text, `onclick` and its kind are listeners, null and false are left out.
export function make(tag, attributes, children) {
  return fill(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes, children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...(children || []).filter((child) => child !== null));
  return element;
}

export function parseSvg(text) {
  return document.adoptNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
}

export function option(value, text, chosen) {
  return make("option", { value, text, selected: chosen });
}

export function labelled(text, control) {
  return make("label", { class: "field" }, [make("span", { text }), control]);
}

// What stands where an answer is still on its way.
export function waiting(text) {
  return make("p", { class: "loading", text });
}

// What went wrong, read out at once.
export function alertBox(children) {
  return make("div", { class: "alert", role: "alert" }, children);
}

// A picture at its natural size or larger, in a frame that scrolls by keyboard too.
export function picture(svg, label) {
  const drawn = parseSvg(svg);
  drawn.style.minWidth = drawn.getAttribute("width") + "px";
  return make("div", { class: "picture", tabindex: "0", role: "group", "aria-label": label }, [drawn]);
}
