"""How a module of torch is run: translated to a graph of operators, or eagerly, as its author wrote it."""
