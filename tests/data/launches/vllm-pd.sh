CUDA_VISIBLE_DEVICES=0,1 vllm serve m --port 8100 -tp 2 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
CUDA_VISIBLE_DEVICES=2,3,4,5 vllm serve m --port 8200 -tp 4 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' &
python3 proxy.py --port 1 &
wait
