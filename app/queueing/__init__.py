"""The doorbell between API and workers: arq on Redis, or the process itself where there is no Redis."""
