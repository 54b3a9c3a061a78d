// Which key of the keyboard means what to the player, and which keys a focused control keeps for itself.

export const ACTIONS = {
  " ": "toggle",
  ArrowLeft: "back",
  ArrowRight: "forward",
  Home: "first",
  End: "last",
};

// The player's action for a key press, or null. A field keeps its own keys, a button the space, the
// scrubber its arrows; keys with Ctrl, Alt or Meta are the browser's.
export function playerAction({ key, ctrlKey, metaKey, altKey, target }) {
  const action = ACTIONS[key];
  if (!action || ctrlKey || metaKey || altKey) return null;
  return keepsKey(target, key) ? null : action;
}

function keepsKey({ tagName, type }, key) {
  if (tagName === "SELECT" || tagName === "TEXTAREA") return true;
  if (tagName === "INPUT") return type !== "range" || key !== " ";
  return key === " " && (tagName === "BUTTON" || tagName === "SUMMARY" || tagName === "A");
}
