"""How samples are given to clients: every partition of the five papers, and a user's own."""
