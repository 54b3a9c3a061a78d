"""Bytes become time; in reading order.

``links`` times one transfer and one hop, ``collectives`` a ring or a direct exchange, ``dispatch_time`` a
batch through relays; ``profiles`` hold measured rates and ``fitting`` says how they were found.
``operators`` and ``roofline`` time the arithmetic of a layer. ``pipeline``, ``decode_pipeline`` and
``dualpipe`` put stages in order, ``overlap`` two streams. ``dwdp`` and the files it names compare moving
weights with moving tokens, and ``chooser`` picks. ``published`` sets all of it beside what others measured.
``timeline`` is what the drawings and the trace exporter read.
"""
