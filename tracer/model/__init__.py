"""What is computed: the shape of a model, and what each part weighs.

``spec`` is the model; ``weights``, ``parameters``, ``dtype`` and ``weight_format`` count its matrices and
bytes; ``routers`` picks experts as real models do; ``configs`` reads Hugging Face config files.
"""
