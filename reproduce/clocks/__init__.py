"""What drives a run: synchronous rounds, sessions of rounds, events in virtual time; and what they record."""
