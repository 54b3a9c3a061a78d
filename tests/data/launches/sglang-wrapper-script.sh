NCCL_DEBUG=WARN X=1 \
/opt/mooncake-libs/run.sh \
/app/bin/python3 -m sglang.launch_server \
  --model-path /m --tp-size 16 --nnodes 2 --node-rank 0 --disaggregation-mode prefill

NCCL_DEBUG=WARN /opt/mooncake-libs/run.sh \
/app/bin/python3 -m sglang.launch_server \
  --model-path /m --tp-size 16 --nnodes 2 --node-rank 1 --disaggregation-mode prefill
curl -v http://10.99.91.49:30001/health
launch_server.py: error: unrecognized arguments: --x
