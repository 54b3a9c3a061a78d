RANK=`hostname|awk -F- '{print $NF}'`
WORLD_SIZE=${WORLD_SIZE:-4}
TP=${TP:-8}
DP=${DP:-1}
EP=${EP:-8}
ENABLE_DEEPEP=${ENABLE_DEEPEP:-0}
DISTRIBUTED_ARGS=(
    --tp-size $TP
    --attention-backend fa3
)
if [ "$ENABLE_DEEPEP" -eq 1 ]; then
  DISTRIBUTED_ARGS+=(--moe-a2a-backend deepep)
fi
if [[ $DP -gt 1 ]]; then
  DISTRIBUTED_ARGS+=(--dp-size $DP --enable-dp-attention)
fi
python3 -m sglang.launch_server --model-path $MODEL_PATH "${DISTRIBUTED_ARGS[@]}" --ep-size $EP --node-rank $RANK
