"""Expert counts: how often each expert of each layer was picked, as load balancers record it.

``expert_counts`` says what they are, ``files`` reads them, ``load_census`` lays them on a scenario's GPUs.
Counts say how much, not who sends to whom: copies and bytes need picks.
"""
