"""The networks of the five papers, as modules of torch."""
