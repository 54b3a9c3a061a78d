"""Bytes and FLOPs become time.

One call is timed by ``estimate``, from fits of measured tables (``calibration``); the layers of a scenario by
``measured``, or at peak rates by ``roofline``; the links that one token crosses by ``trip/clock``.

``collectives`` times a ring or a direct exchange, ``dispatch_time`` a batch through relays, at the ``rates``
of links. ``batch`` and ``operators`` count the arithmetic of a layer, ``roofline`` times it, and
``layer_work`` and ``pass_time`` do so for a scenario. ``schedules`` lays passes out over stages and streams;
``weights`` compares moving weights with moving tokens. ``timeline`` is what drawings and ``trace`` read,
``report`` what the command prints.
"""
