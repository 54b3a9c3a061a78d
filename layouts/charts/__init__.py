"""Charts as plotly figures, one file a chart; plotly loads when a figure is built, and not before."""
