"""How it is decided: one file a judge, its question, rule or prompt, and severity table in the same file."""
