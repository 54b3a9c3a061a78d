import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { askEarly, fetchJson, fetchTripFile } from "../../app/assets/shell/fetch.js";

function answering(status, body) {
  return mock.method(globalThis, "fetch", async () => new Response(body, { status }));
}

afterEach(() => mock.restoreAll());

test("an early question is asked once, prepared, and given to the first who asks it again", async () => {
  const asked = answering(200, '{"a": 1}');
  askEarly("/api/x", (data) => ({ ...data, prepared: true }));
  assert.deepEqual(await fetchJson("/api/x"), { a: 1, prepared: true });
  assert.equal(asked.mock.callCount(), 1);
  assert.deepEqual(await fetchJson("/api/x"), { a: 1 });
  assert.equal(asked.mock.callCount(), 2);
});

test("a file that is sent along is a question of its own", async () => {
  const asked = answering(200, "{}");
  askEarly("/api/y");
  await fetchJson("/api/y", undefined, { method: "POST", body: "picks" });
  assert.equal(asked.mock.callCount(), 2);
  assert.equal(asked.mock.calls[1].arguments[1].method, "POST");
});

test("a refusal is passed on, and an answer that is no JSON says its status", async () => {
  answering(400, '{"error": {"text": "no"}}');
  assert.deepEqual(await fetchJson("/api/z"), { error: { text: "no" } });
  mock.restoreAll();
  answering(502, "<html>");
  assert.deepEqual(await fetchJson("/api/z"), { error: { text: "The explorer did not answer (502)." } });
});

test("a format that refuses a trip says why", async () => {
  answering(400, '{"error": {"text": "too long"}}');
  await assert.rejects(fetchTripFile("a.gif", "?hop=1"), { message: "too long" });
});
