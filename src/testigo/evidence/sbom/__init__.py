"""Bills of materials: CycloneDX JSON, checked, sanitised and bounded, with a signed word on what was made of what.

What is published is never the file that came in (spec D-15): its texts are cleaned, it is valid against the
schema of its version, and it has one canonical form. Whoever only checks signatures (`attest`) loads no schemas.
"""
