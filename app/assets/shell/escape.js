// Escape leaves what is open, the innermost first: a menu or a drawer, then what the page says.

const OPEN = "details.menu[open], details.drawer[open]";

// Menus and drawers close by Escape and by a press beside them, on every page.
export function closeByEscape() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    const [open] = document.querySelectorAll(OPEN);
    if (!open) return;
    open.open = false;
    open.querySelector("summary")?.focus();
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => {
    for (const open of document.querySelectorAll(OPEN)) if (!open.contains(event.target)) open.open = false;
  });
}

// `leave()` is what Escape means to a page with nothing open over it.
export function escapeTo(leave) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) leave();
  });
}
