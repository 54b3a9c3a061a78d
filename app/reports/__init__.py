"""What the pages Traffic, Batch, Time, Roofline and Decode say: the engine's answers as blocks to draw."""
