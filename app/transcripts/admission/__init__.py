"""The door: whether one conversation breaks a rule, seen in its bytes without building it."""
