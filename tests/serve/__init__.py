"""The HTTP API, through a real server on a real socket."""
