"""The servers: started for a run, on this machine's loopback alone, and ended with it."""
