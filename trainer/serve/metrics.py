"""
Counters of the server and their Prometheus text. Invariant: counters only grow; gauges are read when they are asked
for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Metrics:
    """Written by the generation thread (steps, tokens) and the front (requests)."""

    requests: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    step_rows: int = 0
    step_tokens: int = 0
    step_seconds: float = 0.0

    def text(self, *, running: int, waiting: int, adapters: int, cache_bytes: int) -> str:
        """Prometheus exposition format, version 0.0.4."""
        rows = [
            ("prompt_tokens_total", "counter", "Prompt tokens of finished requests", self.prompt_tokens),
            ("prompt_tokens_cached_total", "counter", "Of these, taken from the prefix cache", self.cached_tokens),
            ("completion_tokens_total", "counter", "Sampled tokens of finished requests", self.completion_tokens),
            ("steps_total", "counter", "Forward passes", self.steps),
            (
                "step_rows_total",
                "counter",
                "Rows of all forward passes: divide by steps for the batch size",
                self.step_rows,
            ),
            ("step_tokens_total", "counter", "New tokens of all forward passes, prompts included", self.step_tokens),
            ("step_seconds_total", "counter", "Time in steps, sampling included", round(self.step_seconds, 6)),
            ("running", "gauge", "Requests in the batch", running),
            ("waiting", "gauge", "Requests that wait for a place in the batch", waiting),
            ("adapters", "gauge", "Loaded adapters", adapters),
            ("prefix_cache_bytes", "gauge", "Memory of the prefix cache", cache_bytes),
        ]
        lines = [
            "# HELP policy_server_requests_total Requests by outcome",
            "# TYPE policy_server_requests_total counter",
        ]
        lines += [f'policy_server_requests_total{{outcome="{k}"}} {v}' for k, v in sorted(self.requests.items())]
        for name, kind, text, value in rows:
            lines += [
                f"# HELP policy_server_{name} {text}",
                f"# TYPE policy_server_{name} {kind}",
                f"policy_server_{name} {value}",
            ]
        return "\n".join(lines) + "\n"
