"""The HTTP API at `/api/v1`: a module per noun, each route a thin door over one command or reading."""
