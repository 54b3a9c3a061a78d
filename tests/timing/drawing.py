"""Fewer draws than for whole scenarios: these properties have a handful of numbers each."""

from hypothesis import settings

few = settings(max_examples=max(100, settings().max_examples // 10))
