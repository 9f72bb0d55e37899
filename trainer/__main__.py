"""Command line of the package. Invariant: a subcommand's imports happen only when that subcommand runs, and what is
heavy only once its input was checked.

Bad input is refused with an exit code of its own (trainer/command.py)."""

import argparse
import importlib
import sys
from typing import Any

from trainer.command import answer_question
from trainer.keys import take_keys

LEARNERS = {
    "train": ("one LoRA on rollouts (docs/learner-protocol.md)", "train.job:Job", "train.learn:run"),
    "tinker": ("the same, with a LoRA that a Tinker server holds", "tinker.job:TinkerJob", "tinker.learner:run"),
    "gepa": ("a prompt improved with GEPA; the same protocol (docs/method.md)", "gepa:Job", "gepa:search"),
}
QUESTIONS = {
    "merge": ("make one PEFT adapter out of several weighted ones", "merge:MergeJob", "merge:merge"),
    "fit-router": ("fit the router from an outcome matrix", "fit_router.fit:Question", "fit_router.fit:fit_router"),
    "base-id": ("the name and a hash of a base model", "model_folder:Question", "model_folder:answer_base_id"),
    "fetch-model": ("a base model of a hub, into its cache", "hub:Question", "hub:fetch"),
    "fingerprint": ("log-probs of a base model", "model_folder:Question", "model_folder:fingerprint"),
    "check-tinker": ("whether a Tinker server can train an adapter", "tinker.probe:Question", "tinker.probe:check"),
    "check-model": ("what a LoRA trains in a base model", "model_folder:ModelQuestion", "model_folder:check_model"),
}
"""Maps a command to its help, the model of its input, and its function; both are in this package."""
SERVE = {"serve": ("the embedded policy server (docs/policy-server.md)", "serve.server:main")}


def main(argv: list[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code. Options after the subcommand are the subcommand's own."""
    commands = LEARNERS | QUESTIONS | SERVE
    summary = "\n".join(f"  {name:<16}{help}" for name, (help, *_) in commands.items())
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Gradients, generation, merging and router fitting for campaign.",
        epilog=f"commands:\n{summary}\n\n`python -m trainer COMMAND --help` lists a command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=commands, metavar="COMMAND")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...")
    args = parser.parse_args(argv)
    take_keys()
    help, *names = commands[args.command]
    if args.command in SERVE:
        return _load(names[0])(args.options)
    model, run = names
    form = _load("train.channel:run_learner") if args.command in LEARNERS else answer_question
    return form(args.options, args.command, help, _load(model), lambda *given: _load(run)(*given))


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"trainer.{module}"), attribute)


if __name__ == "__main__":
    sys.exit(main())
