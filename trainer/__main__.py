"""Command line of the package. Invariant: a subcommand's imports happen only when that subcommand runs.

`merge`, `train-gate`, `fit-router`, `base-id`, `check-tokens` and `check-model` refuse a bad input with an exit
code of its own (trainer/command.py)."""

from __future__ import annotations

import argparse
import importlib
import sys

COMMANDS = {
    "train": ("trainer.train", "one LoRA on rollouts; JSON lines on stdin and stdout (docs/learner-protocol.md)"),
    "sft": ("trainer.sft", "one LoRA on conversations; the same protocol"),
    "gepa": ("trainer.gepa", "a prompt improved with GEPA; the same protocol (docs/arms.md)"),
    "serve": ("trainer.serve", "the embedded policy server (docs/policy-server.md)"),
    "merge": ("trainer.merge", "make one PEFT adapter out of several weighted ones"),
    "train-gate": ("trainer.moe_gate", "train a gate over adapters on successful rollouts"),
    "fit-router": ("trainer.fit_router", "fit the router from an outcome matrix"),
    "base-id": (
        "trainer.model_folder:base_id_main",
        "which base model a folder holds: its name and a hash",
    ),
    "fingerprint": (
        "trainer.model_folder:fingerprint_main",
        "log-probs by which a policy server proves its base",
    ),
    "check-tokens": ("trainer.model_folder:check_tokens_main", "count what a tokenizer does not know of some texts"),
    "check-model": (
        "trainer.model_folder:check_model_main",
        "whether a base model is whole, and what a LoRA trains",
    ),
}


def main(argv: list[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code. Options after the subcommand are the subcommand's own."""
    summary = "\n".join(f"  {name:<16}{text}" for name, (_, text) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Gradients, generation, merging and router fitting for campaign.",
        epilog=f"commands:\n{summary}\n\n`python -m trainer COMMAND --help` lists a command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...")
    args = parser.parse_args(argv)
    module, _, function = COMMANDS[args.command][0].partition(":")
    return getattr(importlib.import_module(module), function or "main")(args.options)


if __name__ == "__main__":
    sys.exit(main())
