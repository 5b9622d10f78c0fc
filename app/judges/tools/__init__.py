"""Judges of how the agent used its tools; they decide only about conversations that have tool calls."""
