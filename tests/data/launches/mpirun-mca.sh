TP_SIZE=16
EP_SIZE=$TP_SIZE
mpirun -np 16 \
--hostfile $HOSTFILE \
-mca plm_rsh_args "-p 3441" \       # TODO
-mca btl tcp,self \
-x NCCL_DEBUG=INFO \
--allow-run-as-root \
trtllm-llmapi-launch trtllm-serve $MODEL_PATH \
    --tp_size $TP_SIZE \
    --ep_size $EP_SIZE \
    --extra_llm_api_options extra.yml \
