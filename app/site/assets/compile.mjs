// Run by Node.js when a site is built: the runtime compiles the engine and what it needs of its library.

import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const at = (name) => path.join(folder, name);
const { loadPyodide } = await import(pathToFileURL(at("pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder + path.sep });
for (const name of ["engine.zip", "python_stdlib.zip", "names.txt"]) {
  python.FS.writeFile("/" + name, new Uint8Array(fs.readFileSync(at(name))));
}
python.runPython(`
import importlib, importlib.util, marshal, sys, zipfile

for name in open("/names.txt", encoding="utf-8").read().split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # numpy and others, which the tab has not


def compiled(source, target, kept):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in sorted(old.namelist()):
            if name.endswith("/") or not kept(name):
                continue
            content = old.read(name)
            if name.endswith(".py"):
                code = compile(content, name, "exec", dont_inherit=True, optimize=2)
                head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(content)
                name, content = name + "c", head + marshal.dumps(code)
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


used = {name.replace(".", "/") for name in sys.modules}
whole = ("importlib/", "zipfile/", "json/", "re/", "tomllib/", "html/", "urllib/", "pathlib/", "collections/")
compiled("/engine.zip", "/engine.out.zip", lambda name: True)
compiled(
    "/python_stdlib.zip",
    "/stdlib.out.zip",
    lambda name: name.startswith(whole)
    or not name.endswith(".py")
    or name.removesuffix(".py").removesuffix("/__init__") in used,
)
`);
for (const name of ["engine.out.zip", "stdlib.out.zip"])
  fs.writeFileSync(at(name), python.FS.readFile("/" + name));
process.exit(0);
