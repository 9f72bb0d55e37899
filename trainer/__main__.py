"""Command line of the package. Invariant: a subcommand's imports happen only when that subcommand runs.

`merge`, `weigh-adapters`, `fit-router`, `base-id`, `check-tokens` and `check-model` refuse a bad input with an exit
code of its own (trainer/refusal.py)."""

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
    "weigh-adapters": ("trainer.weigh_adapters", "train a gate over adapters on successful rollouts"),
    "fit-router": ("trainer.fit_router", "fit the router from an outcome matrix"),
    "base-id": ("trainer.base_id", "tell which base model a folder holds: its name and a hash of its files"),
    "fingerprint": ("trainer.fingerprint", "log-probs of some ids, by which a policy server proves its base model"),
    "check-tokens": ("trainer.check_tokens", "count what a tokenizer does not know of some texts"),
    "check-model": ("trainer.check_model", "whether a base model is whole, and which modules a LoRA would train"),
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
    module, _ = COMMANDS[args.command]
    return importlib.import_module(module).main(args.options)


if __name__ == "__main__":
    sys.exit(main())
