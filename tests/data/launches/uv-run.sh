uv run --with vllm --python 3.12 vllm serve m -tp 2
