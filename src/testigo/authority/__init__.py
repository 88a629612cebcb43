"""The authority: one function per command, one transaction per function.

Each module is named after its command and reads from the top: what it promises, its SQL, its
function. What a command may do to a job is decided in `testigo.rules.decide` by the function of the
same name; what happens if it is sent twice is in `receipts`; in which order locks are taken is in
`write`.
"""
