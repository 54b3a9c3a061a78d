"""The explorer for gunicorn, whose background jobs end seconds after their tab is closed."""

import app.web.jobs
from app.server import create_server

app.web.jobs.LONELY_S = 4.0

__all__ = ["create_server"]
