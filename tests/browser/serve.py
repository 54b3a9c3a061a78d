"""Serve a Dash app on a free loopback port and print its address.

Usage: `python -m tests.browser.serve module:factory`.
"""

import importlib
import sys

from werkzeug.serving import make_server


def main(factory: str) -> None:
    module, function = factory.split(":")
    app = getattr(importlib.import_module(module), function)()
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
