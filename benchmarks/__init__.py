"""Speed and memory claims, each as a ratio against a named baseline in the same run."""
