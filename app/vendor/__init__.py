"""Third-party scripts that pages load when they need them, served from this machine.

``plotly-cartesian.min.js`` is plotly.js 4.1.1 with the cartesian charts only: a third of what the Python
package carries. Its licence is beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import flask

PLOTLY = "plotly-cartesian.min.js"


def register_vendor(server: flask.Flask) -> None:
    """Add ``/vendor/…``."""
    from flask import send_from_directory

    folder = Path(__file__).parent

    def plotly() -> flask.Response:
        return send_from_directory(folder, PLOTLY, mimetype="text/javascript", max_age=86_400)

    server.add_url_rule(f"/vendor/{PLOTLY}", "vendor_plotly", plotly)
