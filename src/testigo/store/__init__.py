"""The store: the one door to PostgreSQL, the embedded server, the schema, keys and blobs."""
