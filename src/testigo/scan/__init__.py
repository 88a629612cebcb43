"""Scans: real analysers over a tree, as durable jobs, whose results are published once and whole (system D).

`scope` says which files are looked at, `plan` splits them into parts, `jobs` are the two kinds that do the work,
`publishing` is what the publisher does, and `crew` is what a scan starts when nobody else serves.
"""
