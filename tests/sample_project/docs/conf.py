extensions = ["myst_parser", "app.sphinx_ext"]
