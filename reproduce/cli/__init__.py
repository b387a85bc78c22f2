"""One module a command: NAME, `arguments(parser)`, `run(args)`; heavy imports live inside `run`."""

from reproduce.errors import check_platform

check_platform()  # before what Windows does not have is imported
