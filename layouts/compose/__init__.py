"""From a trip to its scene: what is drawn, told and sent to the player."""
