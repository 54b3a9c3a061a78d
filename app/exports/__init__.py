"""Exports: the formats, the stamp that each file carries, and whether a file is still up to date."""
