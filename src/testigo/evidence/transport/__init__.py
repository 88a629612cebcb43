"""A sealed result on its way from the analyser server to whoever publishes it: one form, written and checked.

A *request* names what is analysed. Its *manifest* says what came of it, and *pages* carry the findings, each page
bound by a *cursor* to one result of one process. Whoever receives them believes nothing: each check is a refusal of
its own, and nothing larger than a page is held in memory (spec D-05 to D-08, D-13).
"""
