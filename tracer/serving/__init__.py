"""From one pass to an answer: pools, K/V hand-over, and the tokens that follow.

``pools`` and the hand-over join a prefill mesh to a decode mesh; ``generation`` walks a whole answer;
``lockstep`` lets replicas wait for each other; ``phases`` puts prefill and decode side by side.
"""
