for i in {0..1}; do
  ssh node$i "cd /w && python3 -m sglang.launch_server --model-path m --tp 16 --nnodes 2 --node-rank $i --dist-init-addr node0:1" &
done
