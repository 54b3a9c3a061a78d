"""The page Batch: a census of picks, EPLB on it, and its rows sorted by expert."""
