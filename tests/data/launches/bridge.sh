torchrun --nproc_per_node=8 examples/pretrain_llama3_8b.py model.tensor_model_parallel_size=4 model.context_parallel_size=2 train.global_batch_size=8
