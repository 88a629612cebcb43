"""Published findings for other programs: SARIF 2.1.0, CSV and OpenVEX, each of one revision of its collection.

What is exported is what was published: redacted, within its limits, and with what people decided. Each is written as
it is read, so that the memory it takes does not depend on how many findings there are.
"""
