"""Conversations that come with the program, for `forensic demo`. All of them were made up for it."""
