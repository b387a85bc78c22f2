"""The algorithms: one small file per family, mathematics only.

Adding one: a frozen dataclass in a new file here that inherits from `FedAvg` (base.py) and overrides the hooks in which
it differs. Nothing is registered anywhere: papers import the class and put instances into their panels, and `play` and
figures find it here (`reproduce.report.names`), named like the class or by its `names`.
"""
