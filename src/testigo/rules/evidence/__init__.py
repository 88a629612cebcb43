"""The rules of evidence: what a finding is, where it is, who it is, what was decided, and whether the gate opens.

Pure as all rules are: what was read, what time it is and what a store holds are arguments (spec D-14 to D-24).
"""
