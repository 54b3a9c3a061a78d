launch_sglang_server() {
  local MODEL_PATH="$1"
  local TP_SIZE="$2"
  local EP_SIZE="$3"
  local NNODES="$4"
  shift 4
  local EXTRA_ARGS=("$@")
  python -m sglang.launch_server \
    --model-path "$MODEL_PATH" --tp-size "$TP_SIZE" --ep-size $EP_SIZE --nnodes ${NNODES} "${EXTRA_ARGS[@]}"
}
launch_sglang_server m 16 8 2 --trust-remote-code --enable-dp-attention --dp 4
