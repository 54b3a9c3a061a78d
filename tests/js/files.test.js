import assert from "node:assert/strict";
import test from "node:test";
import { baseName, csvText, jsonText, slug } from "../../app/assets/core/files.js";

test("tables are written as CSV, with quotes where a cell needs them", () => {
  const rows = [
    ["x", 1],
    ['say "y"', "two\nlines"],
  ];
  assert.equal(csvText(["", "a,b"], rows), ',"a,b"\r\nx,1\r\n"say ""y""","two\nlines"\r\n');
  assert.deepEqual(JSON.parse(jsonText({ a: [1] })), { a: [1] });
});

test("names of files are plain", () => {
  assert.equal(slug("Bytes a GPU sends, axis by axis: K/V"), "bytes-a-gpu-sends-axis-by-axis-k-v");
  assert.equal(baseName({}, "traffic"), "six-cuts-traffic");
  assert.equal(baseName({ scenario: "qwen3-235b" }, "mesh"), "qwen3-235b-mesh");
  assert.equal(baseName({ scenario: "" }, "mesh"), "my-mesh");
});
