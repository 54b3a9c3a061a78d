lmdeploy serve api_server m --tp 8
