"""A whole batch at once: who picks which expert, and what that does to links and GPUs.

``picks`` draws or reads the picks; ``census`` counts them exactly; ``eplb`` places experts by their load;
``permutation`` sorts the rows by expert, as a grouped GEMM wants them.
"""
