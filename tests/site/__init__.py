"""The site: its files, and its Python's answers beside ours."""
