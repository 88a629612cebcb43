"""testigo within frameworks that others write: a small package for each, which needs its framework installed."""
