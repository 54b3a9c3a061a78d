bash -c "python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml model_name=deepseek3-671b ici_fsdp_parallelism=64 ici_expert_parallelism=4 dcn_data_parallelism=-1"
