"""Forensic Evals: examines recorded conversations of LLM agents after the fact."""
