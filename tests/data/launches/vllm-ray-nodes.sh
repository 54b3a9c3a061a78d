NNODES=$@
ray start --head --port=6379
vllm serve --chat-template "./c.jinja" --tensor-parallel-size 8 --pipeline-parallel-size $NNODES --distributed-executor-backend ray "$MODEL_DIR/x" --host 0.0.0.0 --port 8000
