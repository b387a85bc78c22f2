"""Show which data sets are in the data folder, or fetch one.

The folder is REPRODUCE_DATA (default: `data`); its layout is in docs/data.md.
"""

from __future__ import annotations

import argparse

from reproduce.commands.text import print_json, print_table

NAME = "data"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["get"], help="get: fetch the data set NAME")
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def run(args: argparse.Namespace) -> None:
    from reproduce.errors import UserError
    from reproduce.problems import data

    if args.action == "get":
        if args.name is None:
            raise UserError("name the data set to fetch: python -m reproduce data get NAME")
        data.download(args.name)
    known = [{"name": name, "available": data.available(name)} for name in sorted(data.catalogue())]
    if args.json:
        print_json(known)
    else:
        print_table(["DATA SET", "STATE"], [[str(k["name"]), "here" if k["available"] else "missing"] for k in known])
