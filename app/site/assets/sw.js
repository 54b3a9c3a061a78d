// Keeps the site for the next visit, and for one without a network. A new build has another name, and old ones go.

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(SITE.cache)
      // What the page has loaded is in the browser already: it is not asked of the host again.
      .then((cache) => cache.addAll(SITE.kept.map((name) => new Request(name, { cache: "force-cache" }))))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith(SITE.family) && name !== SITE.cache;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && new URL(request.url).origin === location.origin)
    event.respondWith(answer(request));
});

async function answer(request) {
  const cache = await caches.open(SITE.cache);
  const found = await cache.match(request, { ignoreSearch: request.mode === "navigate" });
  if (found) return found;
  const response = await fetch(request);
  if (response.ok && response.type === "basic") cache.put(request, response.clone());
  return response;
}
