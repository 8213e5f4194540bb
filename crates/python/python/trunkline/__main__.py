"""Runs ``python -m trunkline``."""

from .demo import main

main()
