"""Following one token, or several: every hop in order, and what the hops add up to.

``hop`` is what moves; ``hops`` has one builder per kind of hop; ``itinerary`` orders them; ``trip`` counts
them; ``clock`` times them; ``log``, ``compare`` and ``export`` tell and write them.
"""
