"""The project's own app: importing it starts a server, so nobody may import it by mistake."""

raise SystemExit("this is the project's server, not tokentrip's command line")
