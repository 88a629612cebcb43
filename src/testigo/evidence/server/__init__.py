"""The analyser server: runs analysers in processes of their own, seals what they find, and hands it out until told
that it is published (spec D-05, D-12, D-13). It knows no database, and nothing that it holds outlives it.
"""
