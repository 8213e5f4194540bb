"""Compares Trunkline's Python package with its peers on the same servers, in turns.

Run `python -m bench --help` for the options.
"""
