"""The explorer, and the command line."""
