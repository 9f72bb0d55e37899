"""A synthesized environment for OpenEnv: README.md."""

from openenv.core.env_server.mcp_types import CallToolAction

from .client import SynthesizedEnv

__all__ = ["CallToolAction", "SynthesizedEnv"]
