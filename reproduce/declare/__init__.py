"""Frozen values: what a run and an artifact are, their identities, and the code behind them."""
