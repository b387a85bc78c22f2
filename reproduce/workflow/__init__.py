"""What the rules of the Snakefile ask, and its configuration."""
