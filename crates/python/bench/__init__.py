"""Trunkline's Python package and its peers, on the same servers, in turns. `python -m bench --help`."""
