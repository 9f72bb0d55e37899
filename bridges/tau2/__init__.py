"""tau2-bench as an environment (docs/benchmarks.md): its prompts, tools, orchestrator and evaluator as installed."""
