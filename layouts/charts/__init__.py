"""Charts as plotly figures, one file per kind; plotly loads only when a figure is built."""
