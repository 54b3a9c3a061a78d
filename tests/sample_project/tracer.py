"""The project's own tracer: it shares a name with a package of tokentrip."""

SPANS = ["request", "prefill", "decode"]
