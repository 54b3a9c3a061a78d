torchrun --nnodes=2 --nproc_per_node=8 /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py \
  --config-path=/c --config-name=x \
  trainer.num_nodes=2 trainer.devices=8 model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=2 ++model.sequence_parallel=True
