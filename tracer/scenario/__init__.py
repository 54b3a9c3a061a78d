"""One question in full: a deployment, and the token and phase that are asked about.

``plan``, ``placement`` and ``landing`` say how the work is cut; ``token`` and ``routing`` which token is
followed and which experts it picks; ``read`` and ``files`` load and save scenarios and presets.
"""
