"""Data sets: where they are, whether they are whole, as arrays; and a user's own."""
