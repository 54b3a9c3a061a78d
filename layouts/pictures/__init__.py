"""Pictures beside the map: the census, rows sorted by expert, and K/V on its way between pools."""
