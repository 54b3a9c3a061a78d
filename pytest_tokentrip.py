"""Pytest plugin: assert what a token's trip costs.

Imports `tracer` inside its fixtures only: a project under test may have a `tracer.py` of its own.
"""
