"""Measurements, and the reference: a plain loop that tests and `gpu` hold every strategy to; never chosen itself."""

from dataclasses import replace

from reproduce.engine.strategies import NAMED

NAMED["reference"] = replace(
    NAMED["sequential"], name="reference", code="benchmarks.reference:reference_run", precisions=frozenset({"tf32"})
)
