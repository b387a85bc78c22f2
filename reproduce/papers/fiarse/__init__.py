"""FIARSE."""
