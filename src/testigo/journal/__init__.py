"""The journal: what happened, in order, without a gap.

The authority appends events in the transaction that makes them true; the journal reads them. A
stream is read from a cursor (`streams`), followed while it grows (`tail`) and pruned from its
beginning (`prune`); what a job went through is its `history`, and what an event tells is typed by the
`catalogue`.
"""
