"""The order of a run's events: synchronous rounds, sessions of rounds, events in virtual time; and its records."""
