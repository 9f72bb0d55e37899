"""The embedded policy server (docs/policy-server.md)."""
