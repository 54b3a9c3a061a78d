PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
NNODES=2 NODE_RANK=0 NPROC_PER_NODE=8 \
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
megatron sft \
    --load Qwen3-30B-mcore --dataset 'a#2000' 'b#2000' \
    --split_dataset_ratio 0.01 \
    --pipeline_model_parallel_size 2 \
    --expert_model_parallel_size 4 --sequence_parallel true --moe_permute_fusion true
