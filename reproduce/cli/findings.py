"""Write docs/findings, docs/verdicts and the results in README.md from the committed cells."""

from __future__ import annotations

import argparse

from reproduce.cli.frames import plain_strings

NAME = "findings"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")


@plain_strings()
def run(args: argparse.Namespace) -> None:
    from reproduce.errors import UserError
    from reproduce.files import write_text
    from reproduce.pages.documents import pages
    from reproduce.settings import check_place

    check_place()
    found, failed = pages()
    stale = [page for page, text in found.items() if not page.is_file() or page.read_text(encoding="utf-8") != text]
    if args.check and stale:
        failed.append(f"not up to date: {', '.join(map(str, stale))}; run `python -m reproduce findings`")
    for page in [] if args.check else stale:
        write_text(page, found[page])
        print(f"wrote {page}")
    if failed:
        raise UserError("; ".join(failed))
    if not stale:
        print("up to date")
