"""What each GPU holds: weights, K/V, states and buffers, and whether they fit.

``weights`` and ``share`` say which part of the model a rank keeps; ``kv`` and ``kv_owners`` where K/V
lives; ``kv_bytes`` and ``kv_room`` how much it takes and how much there is room for. ``residency`` puts
them together, ``fits`` holds them against the GPU's memory. ``anatomy`` is what one model is made of,
``causal_work`` what each CP rank computes, ``reports`` what ``rank`` and ``groups`` print.
"""
