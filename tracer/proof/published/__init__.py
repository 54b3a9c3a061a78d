"""Measurements that others published, with their protocol, beside what our model says and the error."""
