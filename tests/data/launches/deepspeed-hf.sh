deepspeed --num_gpus=8 run_clm.py --model_name_or_path x --deepspeed ds.json --per_device_train_batch_size 4 --output_dir o
