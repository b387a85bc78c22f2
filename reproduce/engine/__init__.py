"""From requests to numbers: what a run asks for is collected, computed together, evaluated and kept.

Read first: requests, rule, scheduler, trainer, stacking, local, evaluate. Beside them: strategies (the ways to train),
kernels/ (compiled layers), terms (of the loss), own (checks what a user's own algorithm gives), checkpoint,
host (a job's life), machine (what runs it).
"""
