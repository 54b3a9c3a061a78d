"""A census by plain loops, to hold the compiled one against."""

from __future__ import annotations

import numpy as np


def brute_counts(
    picks: np.ndarray, sources: np.ndarray, gpu_of: np.ndarray, nvlink_domain_of: np.ndarray, experts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(copies [gpu, gpu], tokens by [gpu, island], loads by expert) of picks [layers, tokens, k]."""
    gpus, nvlink_domains = len(nvlink_domain_of), int(nvlink_domain_of.max()) + 1
    copies = np.zeros((gpus, gpus), np.int64)
    by_nvlink_domain = np.zeros((gpus, nvlink_domains), np.int64)
    load = np.zeros(experts, np.int64)
    for layer in picks:
        for token, row in enumerate(layer):
            chosen = [int(expert) for expert in row if expert >= 0]
            for gpu in {int(gpu_of[expert]) for expert in chosen}:
                copies[sources[token], gpu] += 1
            for nvlink_domain in {int(nvlink_domain_of[gpu_of[expert]]) for expert in chosen}:
                by_nvlink_domain[sources[token], nvlink_domain] += 1
            for expert in chosen:
                load[expert] += 1
    return copies, by_nvlink_domain, load
