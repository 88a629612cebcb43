"""The two doors of HTTP, the API at `/api/v1` and the panel at `/horizon`: both thin, over the same commands."""
