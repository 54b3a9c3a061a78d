"""Recordings of real runs: read them, recover the layout, hold them against a trip, find who is late.

``read_run`` reads Flight Recorder dumps, profiler traces and NCCL logs into one ``Recording``;
``examine`` makes of it everything that ``tokentrip run`` prints.
"""
