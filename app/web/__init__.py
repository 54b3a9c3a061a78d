"""What the server answers: pages, their data as JSON, background jobs, uploads, and security headers."""
