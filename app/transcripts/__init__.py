"""What was said: a recorded conversation as events in order, turns, tool calls and the catalogue of tools.

Pure: bytes in, frozen dataclasses out. Nothing here knows of judges, storage or HTTP.
"""
