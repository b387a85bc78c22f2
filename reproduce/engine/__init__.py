"""The shared engine: cohorts of runs, the three clocks, evaluation, checkpoints and histories."""
