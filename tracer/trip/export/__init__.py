"""Trips in formats that other tools read. One file per format; each takes a trip and returns text."""
