"""OpenEnv's environments as targets, by OpenEnv's own client: docs/targets.md."""
