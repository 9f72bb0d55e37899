"""
Counters of the server and their Prometheus text. Invariant: counters only grow; gauges are read when they are asked
for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_HELP = {
    "prompt_tokens": "Prompt tokens of finished requests",
    "cached_tokens": "Prompt tokens of finished requests that came from the prefix cache",
    "completion_tokens": "Sampled tokens of finished requests",
    "steps": "Forward passes",
    "step_rows": "Rows of all forward passes: divided by steps, the batch size",
    "step_tokens": "New tokens of all forward passes, prompts included",
    "step_seconds": "Time in forward passes and sampling",
    "running": "Requests in the batch",
    "waiting": "Requests that wait for a place in the batch",
    "adapters": "Loaded adapters",
    "prefix_cache_bytes": "Memory of the prefix cache",
}


@dataclass
class StepMetrics:
    """Counters of the generation thread."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    step_rows: int = 0
    step_tokens: int = 0
    step_seconds: float = 0.0


def exposition(*, requests: Counter[str], counters: Mapping[str, float], gauges: Mapping[str, float]) -> str:
    """Prometheus exposition format 0.0.4. `requests` counts answered requests by outcome."""
    lines = ["# HELP policy_server_requests_total Requests by outcome", "# TYPE policy_server_requests_total counter"]
    lines += [f'policy_server_requests_total{{outcome="{key}"}} {value}' for key, value in sorted(requests.items())]
    for kind, suffix, values in (("counter", "_total", counters), ("gauge", "", gauges)):
        for key, value in values.items():
            name = f"policy_server_{key}{suffix}"
            lines += [f"# HELP {name} {_HELP[key]}", f"# TYPE {name} {kind}", f"{name} {round(value, 6)}"]
    return "\n".join(lines) + "\n"
