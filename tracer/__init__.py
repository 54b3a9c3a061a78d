"""The engine: the mesh, the token's itinerary and its bytes. Draws nothing, serves nothing.

>>> import tracer
>>> tracer.__name__
'tracer'
"""
