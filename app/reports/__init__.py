"""Pages of figures: the engine's answers as blocks to draw."""
