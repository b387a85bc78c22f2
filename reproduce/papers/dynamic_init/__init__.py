"""Dynamic initial models."""
