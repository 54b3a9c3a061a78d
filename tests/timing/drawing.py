"""Fewer draws than for whole scenarios: these properties have a handful of numbers each."""

from draws import draws
from hypothesis import settings

few = settings(max_examples=draws(100))
