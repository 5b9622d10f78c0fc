"""Judges of what the agent said and achieved; one file a dimension."""
