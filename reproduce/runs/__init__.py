"""One catalogue: which runs there are, what is due, what it costs, how it is trained and replayed."""
