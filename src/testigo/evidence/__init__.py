"""Evidence: what analysers report, read and made fit to be published, reviewed and decided on (spec D).

Nothing in here decides: the rules of findings, fingerprints, redaction and gates are `testigo.rules.evidence`.
"""
