"""The trip told hop by hop: each sentence is built from the hop it tells."""
