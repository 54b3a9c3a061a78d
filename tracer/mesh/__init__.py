"""Which GPU is in which group, and where it sits.

``axes`` and ``grid`` turn ranks into coordinates and back; ``mesh`` holds the dense and the expert view
over the same ranks; ``cluster`` and ``hardware`` say which node a rank is on, which link joins two, and how
fast it is.
"""
