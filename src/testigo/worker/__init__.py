"""The worker: a keeper that alone talks to the authority, and runners that execute handlers (spec P-15 to P-23).

User code never runs in the process that holds the lease. `keeper` is the parent, `runner` the child; between
them `protocol`, frames over a socket pair.
"""
