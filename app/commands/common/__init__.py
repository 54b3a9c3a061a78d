"""What commands share: reading a scenario or a model, tables, shell completion."""
