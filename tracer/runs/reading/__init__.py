"""Files to one recording: Flight Recorder dumps, profiler traces, NCCL logs; none of them can run code."""
