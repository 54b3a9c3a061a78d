"""The page Decode: what each axis becomes, who keeps the K/V, and its move between pools."""
