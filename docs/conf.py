"""Settings of the documentation site."""

from pathlib import Path

project = "Tokentrip"
author = "The Tokentrip authors"
project_copyright = author

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "tokentrip",
    "sphinx_click",
]
exclude_patterns = ["_build"]
nitpicky = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

html_theme = "furo"
html_title = "Tokentrip"

# Where `make docs` puts the explorer, for live meshes.
tokentrip_site = "site/"


def fill_ledger(app, docname, source):
    """Put the checked figures, computed now, where the ledger's page asks for them."""
    if docname != "ledger":
        return
    from tracer.proof.ledger.report import ledger, ledger_markdown

    lines = ledger()
    if not all(line.holds for line in lines):
        raise ValueError("a figure of the ledger does not hold: tokentrip ledger says which")
    source[0] = source[0].replace("<!-- ledger -->", ledger_markdown(lines).replace("### ", "## "))


def fill_licences(app, docname, source):
    """List what is installed beside tokentrip, with its licences."""
    if docname == "licences":
        from runpy import run_path

        told = run_path(str(Path(app.srcdir).parent / "scripts" / "licences.py"))
        source[0] = source[0].replace("<!-- licences -->", told["table"]())


def fill_keys(app, docname, source):
    """Put the keys of a scenario file where their page asks for them."""
    if docname == "scenario-keys":
        from tracer.scenario.keys import keys_markdown

        source[0] = source[0].replace("<!-- scenario-keys -->", keys_markdown())


def setup(app):
    app.connect("source-read", fill_ledger)
    app.connect("source-read", fill_licences)
    app.connect("source-read", fill_keys)
