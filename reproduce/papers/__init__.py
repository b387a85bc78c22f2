"""A folder for each paper, which is all that knows it; `reproduce.declare.paper` finds them."""
