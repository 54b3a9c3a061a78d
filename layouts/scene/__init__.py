"""A picture as plain data: what stands where, what moves, and what each colour means."""
