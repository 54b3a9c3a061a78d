"""Measured times as a few fitted numbers; in reading order.

``fit`` turns the physics of one call and the fitted numbers into seconds. ``kernels``, ``attention``,
``experts`` and ``network`` say what the physics of a call is: its arithmetic, its bytes, its launches.
``systems`` finds the calibrated GPU that a piece of hardware is, or the nearest one; ``calls`` says along
which sizes a time grows, and ``answer`` gives the time with its basis and error.
"""
