"""Who may see and do what: users, logins, tokens, roles, and the audit of what they did (panel.md *Access*)."""
