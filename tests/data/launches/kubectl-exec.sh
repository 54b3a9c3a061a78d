kubectl exec -it pod-0 -n ns -- python3 -m sglang.launch_server --model-path m --tp 2
