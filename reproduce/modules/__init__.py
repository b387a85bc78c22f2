"""Execution of modules of torch: translated to a graph of operators, or eagerly, as its author wrote it."""
