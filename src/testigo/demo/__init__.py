"""The demo: real work under real kills, and what the database says of it afterwards.

The work is reading Python files (`files`, `handlers`). Workers do it (`crew`), processes and the database
are killed meanwhile (`engine`), and in the end nothing that ran is asked, only the database (`proof`).
"""
