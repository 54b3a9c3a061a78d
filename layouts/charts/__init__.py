"""Charts as plain data for plotly.js, one file per kind; nothing but the standard library makes them."""
