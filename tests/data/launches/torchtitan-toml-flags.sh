NGPU=16 CONFIG_FILE="./train_configs/llama3_8b.toml" ./run_train.sh --parallelism.tensor_parallel_degree=2
