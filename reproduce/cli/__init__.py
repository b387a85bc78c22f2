"""One module a command: NAME, `arguments(parser)`, `run(args)`; heavy imports live inside `run`."""
