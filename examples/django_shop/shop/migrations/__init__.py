"""The shop's own tables; testigo's are brought up to date by the same `manage.py migrate`."""
