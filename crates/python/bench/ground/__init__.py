"""The servers of a run, which starts and ends them. They listen only on this machine."""
