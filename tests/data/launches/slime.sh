MODEL_ARGS=(--num-layers 96 --hidden-size 4096)
PERF_ARGS=(--tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 4 --context-parallel-size 2 --expert-model-parallel-size 16 --expert-tensor-parallel-size 1)
ray job submit --address="http://127.0.0.1:8265" --runtime-env-json='{"env_vars": {"A": "b"}}' -- python3 train.py --actor-num-nodes 8 --actor-num-gpus-per-node 8 --colocate ${MODEL_ARGS[@]} ${PERF_ARGS[@]} --rollout-num-gpus-per-engine 32
