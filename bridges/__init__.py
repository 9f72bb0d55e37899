"""Bridges: benchmarks in Python, each a process of the environment protocol (docs/environments.md)."""
