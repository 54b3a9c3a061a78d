"""Commands about cost: traffic, time, orders, advise, causal."""
