"""Work laid out in time: pipelines over micro-batches, two-batch overlap, DualPipe and training steps."""
