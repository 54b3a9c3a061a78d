"use strict";
// Small helpers that make elements.
(function () {
  const SVG = "http://www.w3.org/2000/svg";

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

  function make(tag, attributes, children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function makeSvg(tag, attributes, children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  function parseSvg(text) {
    return document.adoptNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
  }

  function option(value, text, chosen) {
    return make("option", { value, text, selected: chosen });
  }

  function labelled(text, control) {
    return make("label", { class: "field" }, [make("span", { text }), control]);
  }

  // What stands where an answer is still on its way.
  function waiting(text) {
    return make("p", { class: "loading", text });
  }

  // A picture at its natural size or larger, in a frame that scrolls by keyboard too.
  function picture(svg, label) {
    const drawn = parseSvg(svg);
    drawn.style.minWidth = drawn.getAttribute("width") + "px";
    return make("div", { class: "picture", tabindex: "0", role: "group", "aria-label": label }, [drawn]);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, {
    dom: { make, makeSvg, parseSvg, picture, waiting, option, labelled },
  });
})();
