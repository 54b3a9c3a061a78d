"""What each axis sends, by closed forms instead of counting tokens.

``attention``, ``moe`` and ``dispatch`` have the forms; ``chance`` the hit probabilities they rest on;
``orders``, ``contracts`` and ``advise`` use them to compare layouts.
"""
