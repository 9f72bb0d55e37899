"""What the subcommands share: JSON that comes from outside, parsed by pydantic; refusals; files that are written whole.

Invariants: what does not fit its model is told in one line that names the first bad field, its value and what is
right. The exit code REFUSED means that the input has to be changed: 2 is argparse's, and 1 is Python's for whatever is
not caught (no memory, a full disk, a defect), which may be gone the next time, and src/policy/python.ts tries again."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

REFUSED = 3

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """No type is turned into another one, and no number is NaN or infinite. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class Closed(Strict):
    """Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Problem(NamedTuple):
    """`field` is empty where the input as a whole is wrong."""

    field: str
    line: str


def first_problem(error: ValidationError, whole: str) -> Problem:
    """What is wrong first. `whole` names the input where no field of it is to blame."""
    first = error.errors(include_url=False, include_context=False)[0]
    kind, field = first["type"], ".".join(map(str, first["loc"]))
    # pydantic's own words say what is right, so they are the fix as well.
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
    if kind == "missing":
        return Problem(field, f"{field}: required; add it")
    if kind == "extra_forbidden":
        message = "no such field; correct its name or remove it"
    if not field:
        return Problem(field, f"{whole}: {message}; it has to be a whole JSON object")
    value = json.dumps(first["input"], default=str)
    return Problem(field, f"{field} {value if len(value) <= 60 else value[:57] + '...'}: {message}")


def read_input(model: type[Model], path: Path, *, name: str, refusal: type[Exception]) -> Model:
    """Reads a JSON file that the user knows as `name` (an option, say). Raises `refusal`."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise refusal(f"{name} {path}: {error.strerror}; name a readable JSON file") from error
    except ValidationError as error:
        raise refusal(first_problem(error, f"{name} {path}").line) from error


def refused(program: str, error: ValueError) -> int:
    """Prints the refusal in one line and returns its exit code. Raises a cause that is no fault of the input: a file
    that is there and can't be read now."""
    cause: BaseException | None = error
    while cause := cause.__cause__:
        if isinstance(cause, OSError) and not isinstance(
            cause, (FileNotFoundError, NotADirectoryError, IsADirectoryError)
        ):
            raise cause
    print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
    return REFUSED


def tell_progress(done: int, total: int) -> None:
    """A line on stdout, which is the worker's heartbeat."""
    print(json.dumps({"done": done, "total": total}), flush=True)


def write_json(path: Path, value: Any) -> None:
    """Writes a file anew, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(value, allow_nan=False) + "\n", encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def job_main(
    argv: list[str], run: Callable[[Model], None], *, program: str, description: str, model: type[Model], refusal: Any
) -> int:
    """A subcommand that does what a job file says. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"trainer {program}", description=description)
    parser.add_argument("--job", required=True, metavar="FILE", help=f"{', '.join(model.model_fields)}")
    path = Path(parser.parse_args(argv).job)
    try:
        run(read_input(model, path, name="--job", refusal=refusal))
    except refusal as error:
        return refused(program, error)
    return 0


def question_main(
    argv: list[str],
    answer: Callable[[Model], dict[str, Any]],
    *,
    program: str,
    description: str,
    model: type[Model],
    refusal: Any,
) -> int:
    """A subcommand that answers a question file with a file. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"trainer {program}", description=description)
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help=f"{', '.join(model.model_fields)}")
    parser.add_argument("--out", required=True, metavar="FILE", help="the answer, made anew")
    options = parser.parse_args(argv)
    try:
        answered = answer(read_input(model, Path(options.source), name="--in", refusal=refusal))
    except refusal as error:
        return refused(program, error)
    write_json(Path(options.out), answered)
    return 0
