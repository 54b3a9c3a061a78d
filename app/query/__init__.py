"""What a reader asks: an address becomes a scenario, and a list of tokens their trips."""
