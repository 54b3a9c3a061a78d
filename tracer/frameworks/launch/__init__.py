"""What people paste, read to the processes that it launches: shell lines, scripts, manifests, configs.

``words``, ``grammar``, ``expansion``, ``arithmetic``, ``conditions`` and ``script`` read shell text without
running it; ``wrappers`` and ``programs`` find the framework behind docker, srun or torchrun;
``manifests`` and ``configs`` read what is in YAML, TOML and JSON; ``adapters`` speak for tools around
a framework (verl, NeMo, ms-swift). ``door`` is the one way in.
"""
