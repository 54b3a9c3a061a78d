"""A deployment, and the token and phase that are asked about: one question in full.

``deployment`` joins cluster, mesh, ``plan``, model and ``placement``; ``scenario`` adds the ``token``,
where it lands (``landing``) and what it picks (``routing``). ``read``, ``write`` and ``files`` load and
save them.
"""
