"""Security headers of every answer: a content security policy, and what keeps other sites out."""

from __future__ import annotations

import dash
import flask

from app.web.embed import ENDPOINT as EMBED_ENDPOINT

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def add_headers(app: dash.Dash) -> None:
    """Send the headers with every answer.

    The policy is computed with the first page: Dash's inline scripts, which it lists by hash, are
    complete only then. Dash needs inline styles.
    """
    policy: list[str] = []

    def secure(response: flask.Response) -> flask.Response:
        framed = flask.request.endpoint == EMBED_ENDPOINT
        for name, value in _HEADERS.items():
            if not (framed and name == "X-Frame-Options"):
                response.headers.setdefault(name, value)
        if response.mimetype == "text/html" and not framed:
            if not policy:
                policy.append(_policy(app))
            response.headers["Content-Security-Policy"] = policy[0]
        return response

    app.server.after_request(secure)


def _policy(app: dash.Dash) -> str:
    scripts = " ".join(["'self'", *app.csp_hashes()])
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src {scripts}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )
