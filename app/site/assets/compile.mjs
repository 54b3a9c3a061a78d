// Run by Node.js when a site is built: the runtime compiles the engine and what it needs of its library.
// Only what a first visit imports becomes bytecode, found by asking for the pages: bytecode packs worse than text.

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
import importlib, importlib.util, marshal, sys, types, zipfile

zipfile.ZipFile("/engine.zip").extractall("/engine")
sys.path.insert(0, "/engine")
LIBRARY = "/lib/python%d%d.zip/" % sys.version_info[:2]


def imported():
    found = set()
    for module in list(sys.modules.values()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
        for place in (LIBRARY, "/engine/"):
            if origin.startswith(place):
                found.add(origin.removeprefix(place))
    return found


from app.site.tab import answer_in_tab

for page in ("trip", "presets", "gpu", "mesh"):
    assert b"error" not in answer_in_tab("/api/" + page, "rank=3").body[:10], page
first = imported()
for page in ("compare", "learn", "decode", "model", "traffic", "roofline", "quiz"):
    assert b"error" not in answer_in_tab("/api/" + page, "").body[:10], page
warm = imported()

for name in open("/names.txt", encoding="utf-8").read().split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # numpy and others, which the tab has not


def no_lines(code):
    # In a table of locations, an entry for "no location" stands for up to eight instructions.
    full, rest = divmod(len(code.co_code) // 2, 8)
    return bytes([0b1_1111_111] * full + ([0b1_1111_000 + rest - 1] if rest else []))


def bare(code):
    inner = (bare(each) if isinstance(each, types.CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=no_lines(code), co_consts=tuple(inner))


# Dataclasses without a docstring make themselves one, which takes time: the engine keeps its own.
def compiled(source, target, kept, hot, optimize):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in sorted(old.namelist()):
            if name.endswith("/") or not kept(name):
                continue
            content = old.read(name)
            if name in hot:
                code = bare(compile(content, name, "exec", dont_inherit=True, optimize=optimize))
                head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(content)
                name, content = name + "c", head + marshal.dumps(code)
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


used = {name.replace(".", "/") for name in sys.modules}
whole = ("importlib/", "zipfile/", "json/", "re/", "tomllib/", "html/", "urllib/", "pathlib/", "collections/")
compiled("/engine.zip", "/engine.out.zip", lambda name: True, first, 0)
compiled(
    "/python_stdlib.zip",
    "/stdlib.out.zip",
    lambda name: name.startswith(whole)
    or not name.endswith(".py")
    or name.removesuffix(".py").removesuffix("/__init__") in used,
    warm,
    2,
)
`);
for (const name of ["engine.out.zip", "stdlib.out.zip"])
  fs.writeFileSync(at(name), python.FS.readFile("/" + name));
process.exit(0);
