"""The engine: collects the requests of all runs, computes equal ones together, evaluates models and keeps checkpoints.

Read first: requests, rule, scheduler, trainer, stacking, local, evaluate. Beside them: strategies (the ways to train),
kernels/ (compiled layers), terms (of the loss), order (of requests), logits (of evaluation), user_code (its process and
checks), checkpoint, host (a job's life), machine (its settings).
"""
