"""The embedded policy server (docs/policy-server.md)."""

import os

# Kernels from a hub are looked for at import time otherwise: a server must start without network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
