"""Figures checked: what the source articles state, what the engine computes, and which holds."""
