"""Whoever imports this says in one line which Python package it misses, in place of a traceback."""

import sys
from pathlib import Path


def say(kind, error, trace):
    if issubclass(kind, ModuleNotFoundError) and error.name:
        print(f"{Path(sys.argv[0]).stem}: Python package needed: {error.name.split('.')[0]}; see tools/README.md", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = say
