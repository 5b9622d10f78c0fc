"""Evidence is cut from the transcript by the server, never taken on trust: a quote that is not there is never shown.

``cite`` makes evidence for a place that code knows; ``locate`` finds the place of words that a model quoted.
"""
