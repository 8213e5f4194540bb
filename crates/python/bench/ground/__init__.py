"""The servers. A run starts them, and ends them. They listen only on this machine."""
