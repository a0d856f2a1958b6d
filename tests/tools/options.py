"""Options that the generators of tests/data share, and their last lines."""

import argparse
import sys


def read_options(doc, checks=True):
    """`only` is a list of names, empty for all."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    if checks:
        parser.add_argument("--check", action="store_true", help="compare with the existing files and write nothing")
    return parser.parse_args()


def exit_code(problems):
    """Prints the problems. 1 if there are any."""
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0
