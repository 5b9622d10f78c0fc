"""The batch: what a client asked for, what became of it, and the states in between."""
