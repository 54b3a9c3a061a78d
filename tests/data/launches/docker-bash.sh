sudo docker run --rm -it --gpus '"device=0,1"' --shm-size 32g --network host -v /a:/b -e HF_TOKEN=x --entrypoint bash img:tag -lc "python3 -m sglang.launch_server --model-path m --tp 2"
