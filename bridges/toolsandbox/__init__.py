"""ToolSandbox as an environment, from a folder of the user's: docs/benchmarks.md. Nothing of it is in this tree."""
