conda run -n v --no-capture-output numactl --cpunodebind=0 --membind=0 python -m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size=2
