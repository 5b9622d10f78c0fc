"""The routes, by what they are about. A handler reads top to bottom: ask the pipeline, return bytes."""
