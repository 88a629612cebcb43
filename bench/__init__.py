"""What testigo costs on this machine: `make bench` prints a table and writes it as JSON.

Machines are shared and noisy: a figure means something beside the others of the same run, which is why
each row also shows its ratio to the run's own yardstick.
"""
