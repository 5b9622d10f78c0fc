"""What was found: verdicts, findings with checked evidence, and how they roll up into a result."""
