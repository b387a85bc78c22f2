"""Show which data sets are in the data folder, or fetch one.

The folder is REPRODUCE_DATA (default: `data`); its layout is in docs/data.md.
"""

import argparse

from reproduce.errors import UserError
from reproduce.settings import settings
from reproduce.text import print_table

NAME = "data"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("get",), help="fetch the data set NAME")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a data set, as the list shows it")


def run(args: argparse.Namespace) -> None:
    from reproduce.data.download import download
    from reproduce.data.load import available
    from reproduce.data.sources import SOURCES

    options = settings()
    sources = tuple(SOURCES.values())
    if args.action == "get":
        if args.name is None:
            raise UserError("name the data set to fetch: reproduce data get NAME")
        download(args.name, options)
        sources = tuple(source for source in sources if source.name == args.name)
    rows = [
        [s.name, available(s.name, options).state, f"{s.train:,}", f"{s.test:,}", ", ".join(s.papers), s.licence]
        for s in sources
    ]
    print_table(["DATA SET", "STATE", "TRAIN", "TEST", "PAPERS", "LICENCE"], rows, ("TRAIN", "TEST"))
    print(f"\ndata folder: {options.data}{'' if options.data.is_dir() else ' (does not exist)'}")
