"""What each GPU holds: weights, K/V and buffers, and whether they fit.

``weights`` and ``share`` say which part of the model a rank keeps; ``kv`` and ``kv_owners`` where K/V lives;
``residency`` puts both together and ``fits`` holds them against the GPU's memory.
"""
