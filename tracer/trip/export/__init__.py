"""Trips in formats that other tools read. One file a format; each takes a trip and returns text."""
