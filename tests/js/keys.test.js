import assert from "node:assert/strict";
import test from "node:test";
import { playerAction } from "../../app/assets/core/keys.js";

const press = (key, tagName = "BODY", more = {}) => playerAction({ key, target: { tagName, ...more } });

test("keys on the page move the player", () => {
  const actions = [" ", "ArrowLeft", "ArrowRight", "Home", "End", "x"].map((key) => press(key));
  assert.deepEqual(actions, ["toggle", "back", "forward", "first", "last", null]);
});

test("fields keep their keys, buttons and links the space, the scrubber its arrows", () => {
  assert.equal(press("ArrowLeft", "SELECT"), null);
  assert.equal(press(" ", "TEXTAREA"), null);
  assert.equal(press(" ", "INPUT", { type: "text" }), null);
  for (const tag of ["BUTTON", "SUMMARY", "A"]) {
    assert.equal(press(" ", tag), null);
    assert.equal(press("ArrowRight", tag), "forward");
  }
  assert.equal(press("ArrowRight", "INPUT", { type: "range" }), null);
  assert.equal(press(" ", "INPUT", { type: "range" }), "toggle");
});

test("keys with Ctrl, Alt or Meta are the browser's", () => {
  for (const held of ["ctrlKey", "altKey", "metaKey"]) {
    assert.equal(playerAction({ key: "ArrowLeft", [held]: true, target: { tagName: "BODY" } }), null);
  }
});
