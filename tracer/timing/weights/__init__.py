"""Weights that move instead of tokens (DWDP): one layer, its buffers, contention, and when it pays."""
