"""Following tokens: every hop in order, and what the hops add up to.

``hop`` is what moves; ``hops`` has one builder per kind of hop; ``itinerary`` orders them; ``trip`` is one
token's hops and their sums, ``trips`` those of n >= 1 tokens on one map, ``link_loads`` what links carried;
``clock`` times them; ``log``, ``compare`` and ``export`` tell and write them.
"""
