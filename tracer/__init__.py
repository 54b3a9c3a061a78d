"""The engine: the mesh, the token's itinerary and its bytes. Draws nothing, serves nothing."""
