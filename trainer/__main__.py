"""Command line of the package. Invariant: a subcommand's imports happen only when that subcommand runs, and what is
heavy only once its input was checked.

Whatever refuses a bad input does so with an exit code of its own (trainer/command.py)."""

import argparse
import importlib
import sys
from typing import Any, NamedTuple

from trainer.keys import take_keys

QUESTION, LEARNER = "command:answer_question", "train.channel:run_learner"


class Command(NamedTuple):
    """`form` reads the command line and a `model` of input, and calls `run`; without these it does all by itself."""

    help: str
    form: str
    model: str = ""
    run: str = ""


def _about_base(help: str, model: str, run: str) -> Command:
    return Command(help, QUESTION, f"model_folder:{model}", f"model_folder:{run}")


COMMANDS = {
    "train": Command("one LoRA on rollouts (docs/learner-protocol.md)", LEARNER, "train.job:Job", "train.grpo:run"),
    "tinker": Command(
        "one LoRA on rollouts, held by a server of the Tinker API; the same protocol",
        LEARNER,
        "tinker.job:TinkerJob",
        "tinker.learner:run",
    ),
    "gepa": Command(
        "a prompt improved with GEPA; the same protocol (docs/arms.md)", LEARNER, "gepa:Job", "gepa:search"
    ),
    "serve": Command("the embedded policy server (docs/policy-server.md)", "serve.server:main"),
    "merge": Command("make one PEFT adapter out of several weighted ones", QUESTION, "merge:MergeJob", "merge:merge"),
    "fit-router": Command(
        "fit the router from an outcome matrix", QUESTION, "fit_router.fit:Question", "fit_router.fit:fit_router"
    ),
    "base-id": _about_base("which base model a folder holds: its name and a hash", "Question", "answer_base_id"),
    "fingerprint": _about_base("log-probs that a policy server of a base must have", "Question", "fingerprint"),
    "check-tinker": Command(
        "whether a Tinker server can train an adapter", QUESTION, "tinker.probe:Question", "tinker.probe:check"
    ),
    "check-model": _about_base("whether a base model is whole, and what a LoRA trains", "ModelQuestion", "check_model"),
}
"""What they name stands in this package."""


def main(argv: list[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code. Options after the subcommand are the subcommand's own."""
    summary = "\n".join(f"  {name:<16}{command.help}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Gradients, generation, merging and router fitting for campaign.",
        epilog=f"commands:\n{summary}\n\n`python -m trainer COMMAND --help` lists a command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...")
    args = parser.parse_args(argv)
    take_keys()
    command = COMMANDS[args.command]
    if not command.model:
        return _load(command.form)(args.options)

    def run(*given: Any) -> Any:
        return _load(command.run)(*given)

    return _load(command.form)(args.options, args.command, command.help, _load(command.model), run)


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"trainer.{module}"), attribute)


if __name__ == "__main__":
    sys.exit(main())
