"""Commands about decode: generate, kv, lockstep, phases."""
