"""The client: OpenEnv's own for environments with tools."""

from openenv.core.mcp_client import MCPToolClient


class SynthesizedEnv(MCPToolClient):
    """`reset(seed=N)`, `list_tools()`, `step(CallToolAction(tool_name=..., arguments=...))`."""
