"""Commands about a whole batch: census, eplb."""
