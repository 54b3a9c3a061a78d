from vllm import LLM
llm = LLM(model="x", tensor_parallel_size=4)
