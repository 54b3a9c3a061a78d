"""Why the figures can be believed.

``replay`` runs the mesh on real arrays and holds it to one device; ``ledger`` recomputes every figure of the
sources; ``published`` puts measurements of others beside ours.
"""
