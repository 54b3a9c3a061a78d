"""One layer on real arrays: attention of each kind, feed-forward blocks, and the weights a GPU holds."""
