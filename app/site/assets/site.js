// The explorer's questions, answered without a server: from what is baked into the site, else by Python in a
// worker that all frames of the site share. Stands before the explorer's own scripts.

(() => {
  const root = document.documentElement;
  const home = new URL(root.dataset.base + "/", location.href);
  const network = window.fetch.bind(window);
  const waiting = new Map();
  let port = null;
  let asked = 0;
  let failed = "";

  if (root.dataset.start && !location.search) {
    history.replaceState(history.state, "", location.pathname + root.dataset.start);
  }

  window.fetch = async (input, options = {}) => {
    const url = new URL(typeof input === "string" ? input : input.url, location.href);
    const path = "/" + url.pathname.slice(home.pathname.length);
    if (url.origin !== location.origin || !/^\/(api|export)\//.test(path)) return network(input, options);
    const baked = SITE.baked[path + JSON.stringify([...url.searchParams])];
    if (baked && !options.method) {
      const found = await network(new URL(baked, home), { signal: options.signal });
      if (found.ok) return found;
    }
    return path.endsWith(".png") ? picture(path, url.search, options) : ask(path, url.search, options);
  };

  // A link to a file, as on the pages of figures: fetched here, then saved.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[download]");
    const path = link && "/" + link.pathname.slice(home.pathname.length);
    if (!path?.startsWith("/export/") || event.defaultPrevented) return;
    event.preventDefault();
    const found = await window.fetch(link.href);
    const blob = found.ok ? await found.blob() : null;
    if (!blob) {
      status((await found.json()).error.text);
      return;
    }
    const address = URL.createObjectURL(blob);
    Object.assign(document.createElement("a"), { href: address, download: path.split("/").pop() }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });

  async function ask(path, search, { signal, body } = {}) {
    if (failed) return refused(failed);
    const id = (asked += 1);
    const sent = body === undefined || body === null ? null : await new Response(body).arrayBuffer();
    const found = await new Promise((resolve, reject) => {
      const abort = () => {
        waiting.delete(id);
        reject(new DOMException("The question is no longer asked.", "AbortError"));
      };
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
      waiting.set(id, resolve);
      port.postMessage({ id, path, query: search.slice(1), body: sent });
    });
    if (found.failed) return refused(found.failed);
    return new Response(found.bytes, { status: found.status, headers: { "Content-Type": found.kind } });
  }

  function refused(text) {
    const error = { field: null, rule: text, fix: "", text: "Python in this page failed: " + text };
    return new Response(JSON.stringify({ error }), {
      status: 200,
      headers: { "Content-Type": "application/json" },
    });
  }

  // Pixels of the SVG, drawn by the browser.
  async function picture(path, search, options) {
    const drawn = await ask(path.replace(/\.png$/, ".svg"), search, options);
    if (!drawn.ok) return drawn;
    const address = URL.createObjectURL(new Blob([await drawn.text()], { type: "image/svg+xml" }));
    const image = Object.assign(new Image(), { src: address });
    await image.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    return new Response(blob, { headers: { "Content-Type": "image/png" } });
  }

  function heard({ data }) {
    if (data.id !== undefined) {
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    } else if (data.failed) {
      failed = data.failed;
      for (const resolve of waiting.values()) resolve({ failed });
      waiting.clear();
      status(
        "This browser could not start the page's Python (" + failed + "): pictures stay, changes do not.",
      );
    } else {
      root.dataset.live = data.progress === 1 ? "yes" : "soon";
      status(data.progress === 1 ? "" : "Python is loading: " + Math.round(100 * data.progress) + " %");
    }
  }

  function status(text) {
    const show = () => {
      const old = document.getElementById("site-status");
      const box = old ?? Object.assign(document.createElement("p"), { id: "site-status" });
      box.setAttribute("role", "status");
      box.textContent = text;
      box.hidden = !text;
      if (!old) document.body.append(box);
    };
    if (document.body) show();
    else document.addEventListener("DOMContentLoaded", show, { once: true });
  }

  // Frames of one page share a worker; a page of its own has one that ends with it.
  function startWorker() {
    const address = new URL(SITE.worker, home);
    if (window.SharedWorker && "embedded" in root.dataset) {
      port = new SharedWorker(address, { type: "module", name: SITE.cache }).port;
      port.onmessage = heard;
    } else {
      port = new Worker(address, { type: "module" });
      port.onmessage = heard;
      port.onerror = (event) => heard({ data: { failed: event.message || "no worker" } });
    }
    port.postMessage({ start: SITE });
  }

  startWorker();
  if ("serviceWorker" in navigator && window.isSecureContext) {
    navigator.serviceWorker.register(new URL("sw.js", home)).catch(() => {});
  }
})();
