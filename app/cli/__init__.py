"""The ``forensic`` command: runs the service on one machine, and sends it conversations."""
