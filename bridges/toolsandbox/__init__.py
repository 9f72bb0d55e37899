"""ToolSandbox as an environment, from a folder of the user's: docs/toolsandbox.md. Nothing of it is in this tree."""
