vllm bench throughput --model m -tp 4
