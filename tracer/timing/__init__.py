"""Bytes become time; in reading order.

``links`` times one transfer and one hop, ``trip_time`` a trip, ``collectives`` a ring or a direct exchange,
``dispatch_time`` a batch through relays; ``profiles`` hold measured rates and ``fitting`` says how they
were found. ``batch`` and ``operators`` count the arithmetic of a layer, ``roofline`` times it, and
``layer_work`` and ``pass_time`` do so for a scenario. ``pipeline``, ``chunked_prompt``,
``decode_pipeline`` and ``dualpipe`` put stages in order, ``streams`` and ``overlap`` two micro-batches.
``moe_setup`` and ``dwdp`` compare moving weights with moving tokens (``dwdp_buffers``,
``dwdp_contention``, ``rendezvous`` and ``dwdp_crossover`` its parts), ``checklist`` says when that is
valid, and ``chooser`` picks. ``published`` sets all of it beside what others measured.
``timeline`` is what drawings and the trace exporter read,
``report`` what the command prints.
"""
