"""The whole batch: every token's picks counted into copies, bytes and loads.

``layout`` turns a scenario into tables of bit masks; ``kernel`` (compiled, numba) counts blocks of
tokens with them; ``run`` walks picks through it on threads, ``cluster`` on a Dask cluster; ``traffic``
folds the counts into what each link carries; ``result`` is the census a person reads.
"""
