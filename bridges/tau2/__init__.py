"""tau2-bench as an environment: docs/tau2.md. Its prompts, tools, orchestrator and evaluator are used as installed."""
