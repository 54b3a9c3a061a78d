// Where the explorer lies on its host: at the root, below a prefix, or in a folder of files.

const { base, files } = globalThis.document?.documentElement.dataset ?? {};
const BASE = base ? new URL(base, location.href).pathname.replace(/\/$/, "") : "";

// The address of something that the explorer asks for: "/api/trip", "/export/a.svg".
export function ownAddress(path) {
  return BASE + path;
}

// The address of a page; in a folder of files each page is a folder.
export function pageAddress(path) {
  return BASE + path + (files !== undefined && path !== "/" ? "/" : "");
}

// The page that an address shows, as its path: "/mesh".
export function pathOf(pathname = location.pathname) {
  const path = pathname.slice(BASE.length).replace(/\/(index\.html)?$/, "");
  return path || "/";
}
