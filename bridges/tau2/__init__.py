"""tau2-bench as an environment: docs/benchmarks.md. Its prompts, tools, orchestrator and evaluator are used as installed."""
