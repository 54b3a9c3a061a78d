"""Modules are joined as JavaScript joins them; what cannot be joined is refused with its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.es_modules import Import, ModuleError, explorer_script, link, parse_module, player_script

APP = Path(__file__).parents[1] / "app"


def written(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder


def test_imports_and_exports_are_read() -> None:
    text = (
        "// What it is for.\n\n"
        'import { a, b as c } from "../core/a.js";\n'
        'import {\n  long,\n  longer,\n} from "./b.js";\n'
        'import "./effects.js";\n\n'
        "export const $size = 8;\nexport function show() {}\nexport async function ask() {}\n"
        "export class Box {}\nfunction hidden() {}\n"
    )
    module = parse_module("map/map.js", text)
    assert module.imports == (
        Import("core/a.js", (("a", "a"), ("b", "c"))),
        Import("map/b.js", (("long", "long"), ("longer", "longer"))),
        Import("map/effects.js", ()),
    )
    assert module.exports == ("$size", "show", "ask", "Box")
    assert "import" not in module.body
    assert "export" not in module.body


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('import map from "./a.js";', 1),
        ('import * as map from "./a.js";', 1),
        ("import { a } from './a.js';", 1),
        ('import { a } from "a.js";', 1),
        ('import { a } from "./a.js"', 1),
        ('import {} from "./a.js";', 1),
        ('import { a } from "../../a.js";', 1),
        ('\n  import { a } from "./a.js";', 2),
        ('const a = 1;\nimport { b } from "./b.js";', 2),
        ("// Later.\nconst a = await import('./a.js');", 2),
        ("const here = import.meta.url;", 1),
        ("export default 1;", 1),
        ("const a = 1;\nexport { a };", 2),
        ('export * from "./a.js";', 1),
        ("export let a = 1;", 1),
        ("export const { a } = b;", 1),
        ("  export const a = 1;", 1),
        ("const a = `\nexport const b = 1;\n`;", 1),
    ],
)
def test_other_forms_are_refused_where_they_stand(text: str, line: int) -> None:
    with pytest.raises(ModuleError, match=rf"^map/a\.js:{line}: "):
        parse_module("map/a.js", text)


def test_words_that_begin_like_imports_are_no_imports() -> None:
    text = "export const imports = { import: 1 };\nconst found = {\n  export: 2,\n};\nexports.push(found);\n"
    assert parse_module("a.js", text).exports == ("imports",)


def test_each_module_comes_once_and_after_those_that_it_imports(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        main='import { b } from "./b.js";\nimport { a } from "./a.js";\nb(a);\n',
        b='import { a } from "./a.js";\nexport const b = a;\n',
        a="export const a = 1;\n",
    )
    assert re.findall(r"^// (\w+)\.js$", link("main.js", root), re.MULTILINE) == ["a", "b", "main"]


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"a": 'import "./b.js";\n'}, r"there is no b\.js, which a\.js imports"),
        ({"a": 'import { c } from "./b.js";\n', "b": ""}, r"a\.js imports c, which b\.js does not export"),
        ({"a": 'import "./b.js";\n', "b": 'import "./a.js";\n'}, r"circle: a\.js imports b\.js imports a\.js|"
         r"circle: b\.js imports a\.js imports b\.js"),
        ({}, r"there is no a\.js$"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_named(tmp_path: Path, modules: dict[str, str], message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        link("a.js", written(tmp_path, **modules))


def test_every_script_is_part_of_the_explorer() -> None:
    found = set(re.findall(r"^// (assets/\S+\.js)$", explorer_script(), re.MULTILINE))
    assert found == {path.relative_to(APP).as_posix() for path in (APP / "assets").rglob("*.js")}


def test_the_page_in_a_file_asks_no_server() -> None:
    script = player_script()
    assert "// standalone/player_page.js" in script
    for word in ("fetch(", "</script", "localStorage", "dash_clientside"):
        assert word not in script


def test_scripts_share_nothing_through_globals() -> None:
    shared = re.findall(r"window\.([\w$]+)", explorer_script())
    # `fetch` is wrapped, since Dash tells nobody what a refused job was told.
    assert set(shared) <= {"dash_clientside", "Plotly", "matchMedia", "fetch"}
