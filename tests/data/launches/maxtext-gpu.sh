export NODES=4
python3 -m MaxText.train src/MaxText/configs/models/gpu/llama2_7b.yml hardware=gpu run_name=x dcn_data_parallelism=4 ici_fsdp_parallelism=8 ici_data_parallelism=1
