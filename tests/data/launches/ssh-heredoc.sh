ssh node1 <<'EOF'
cd /w
vllm serve m -tp 8 --nnodes 2 --node-rank 1
EOF
