"""A synthesized environment for verifiers: README.md."""

from .taskset import SynthesizedEnv, SynthesizedHarness, SynthesizedTaskset

__all__ = ["SynthesizedEnv", "SynthesizedHarness", "SynthesizedTaskset"]
