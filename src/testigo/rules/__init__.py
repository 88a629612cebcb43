"""The rules: pure functions and values that decide, without a clock, a draw, a store or a network.

Time, randomness and what was read are arguments, so every decision can be tested to its corners and
walked exhaustively (architecture, *The five decisions*, 3).
"""
