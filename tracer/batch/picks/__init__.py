"""Picks of whole batches: drawn from a model of routing, or recorded by a serving engine.

``source`` says what a set of picks is; ``draws`` makes them; ``files`` and the files beside it read them.
"""
