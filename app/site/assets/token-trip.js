// <token-trip scenario="six-cuts" hop="4" live>: a still picture of a trip, and the explorer in its place on click.
// What stands inside the element is its picture; without one it is the preset's, from the site.

(() => {
  const home = new URL(".", document.currentScript.src);
  const OWN = new Set(["scenario", "live", "query", "class", "id", "style", "height", "title"]);

  class TokenTrip extends HTMLElement {
    connectedCallback() {
      if (this.shadowRoot) return;
      const inside = this.attachShadow({ mode: "open" });
      const name = this.getAttribute("scenario") || "six-cuts";
      const style = document.createElement("style");
      style.textContent =
        ":host{display:block;position:relative}img,iframe,::slotted(*){max-width:100%}iframe{width:100%;border:0}" +
        "button{position:absolute;right:8px;top:8px;font:600 13px system-ui,sans-serif;padding:6px 12px;" +
        "border:1px solid #5d6378;border-radius:8px;background:#fff;color:#1c2030;cursor:pointer}";
      const slot = document.createElement("slot");
      slot.append(
        Object.assign(document.createElement("img"), {
          src: new URL("pictures/" + encodeURIComponent(name) + ".svg", home).href,
          alt: "One token's trip through " + name,
          loading: "lazy",
        }),
      );
      inside.append(style, slot);
      if (this.hasAttribute("live")) inside.append(this.button(slot));
    }

    button(slot) {
      const onclick = () => this.play(slot);
      return Object.assign(document.createElement("button"), {
        type: "button",
        textContent: "Make it live",
        onclick,
      });
    }

    play(slot) {
      const scenario = this.getAttribute("scenario") || "six-cuts";
      const query = new URLSearchParams(this.getAttribute("query") ?? { scenario });
      for (const { name, value } of this.attributes) if (!OWN.has(name)) query.set(name, value);
      const frame = Object.assign(document.createElement("iframe"), {
        src: new URL("live/", home).href + "?" + query,
        title: this.title || "One token's trip, live",
        height: this.getAttribute("height") || Math.max(640, this.offsetHeight),
      });
      this.shadowRoot.querySelector("button").remove();
      slot.replaceWith(frame);
    }
  }

  if (!customElements.get("token-trip")) customElements.define("token-trip", TokenTrip);
})();
