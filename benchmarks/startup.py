"""How long the command and the engine take to start: the best of a few runs, in milliseconds."""

import subprocess
import sys
import time
from pathlib import Path

RUNS = 7
TOKENTRIP = Path(sys.executable).with_name("tokentrip")
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import tracer": [sys.executable, "-c", "import tracer"],
    "tokentrip --version": [TOKENTRIP, "--version"],
    "tokentrip --help": [TOKENTRIP, "--help"],
}


def best_ms(command: list[str | Path]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


if __name__ == "__main__":
    for name, command in COMMANDS.items():
        print(f"{name:24}{best_ms(command):8.0f} ms")
