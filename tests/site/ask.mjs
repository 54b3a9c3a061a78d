// Answers questions with a site's own runtime, as its worker does: node ask.mjs SITE < questions > answers.
// A line of JSON each: { path, query, body } (body in base64 or null) → { status, kind, body (base64), name }.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import readline from "node:readline";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";

const site = process.argv[2];
const script = fs.readFileSync(
  path.join(
    site,
    fs.readdirSync(site).find((name) => /^site-.*\.js$/.test(name)),
  ),
  "utf8",
);
const settings = JSON.parse(script.slice(script.indexOf("{"), script.indexOf(";\n")));
const part = (name) => zlib.gunzipSync(fs.readFileSync(path.join(site, settings.parts[name])));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "site-"));
fs.copyFileSync(path.join(site, "runtime/pyodide.mjs"), path.join(folder, "pyodide.mjs"));
for (const [name, file] of [
  ["asm", "pyodide.asm.mjs"],
  ["wasm", "pyodide.asm.wasm"],
  ["stdlib", "python_stdlib.zip"],
]) {
  fs.writeFileSync(path.join(folder, file), part(name));
}
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder + path.sep, lockFileContents: settings.lock });
python.unpackArchive(new Uint8Array(part("engine")), "zip", { extractDir: "/engine" });
python.runPython(`
import base64, json, sys
sys.path.insert(0, "/engine")
from app.site.tab import answer_in_tab

def ask(line):
    asked = json.loads(line)
    body = None if asked.get("body") is None else base64.b64decode(asked["body"])
    found = answer_in_tab(asked["path"], asked["query"], body)
    content = base64.b64encode(found.body).decode()
    return json.dumps({"status": found.status, "kind": found.kind, "name": found.name, "body": content})
`);
const ask = python.globals.get("ask");
for await (const line of readline.createInterface({ input: process.stdin }))
  process.stdout.write(ask(line) + "\n");
fs.rmSync(folder, { recursive: true });
process.stdout.write("", () => process.exit(0));
