"""The page Traffic: what each axis sends, and what another order of the axes would change."""
