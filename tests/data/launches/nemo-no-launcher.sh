python /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py trainer.num_nodes=4 trainer.devices=8 model.tensor_model_parallel_size=8
