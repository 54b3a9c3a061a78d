"""From words to a question: an address or a list of tokens becomes a scenario and what is followed in it."""
