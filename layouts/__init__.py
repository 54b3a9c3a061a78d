"""Pictures: geometry as plain data, then one renderer a target."""
