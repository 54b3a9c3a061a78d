torchrun --nproc_per_node=8 scripts/pretrain.py --recipe llama3_8b
