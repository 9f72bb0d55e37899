"""Shared code of the subcommands: JSON input checked by pydantic, refusals, and atomic writes of files.

Invariants: invalid input is reported in one line that names the first bad field, its value and the fix. The exit code
REFUSED means that the input has to be changed. argparse exits with 2, and Python with 1 after an uncaught exception (no
memory, a full disk, a defect), which may be transient: src/policy/python.ts retries it."""

import argparse
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

REFUSED = 3

Model = TypeVar("Model", bound=BaseModel)


class BadInput(ValueError):
    """The input can't be used, and a retry does not help. The message is one line: field, value and fix."""


class Strict(BaseModel):
    """No type is turned into another one, and no number is NaN or infinite. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class Closed(Strict):
    """Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def first_problem(error: ValidationError, source: str) -> tuple[str, str]:
    """The field that is wrong first, and a line that says what. The field is empty where the input as a whole is wrong,
    which the line calls `source`."""
    first = error.errors(include_url=False, include_context=False)[0]
    kind, field = first["type"], ".".join(map(str, first["loc"]))
    # pydantic's own words say what is right, so they are the fix as well.
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
    if kind == "missing":
        return field, f"{field}: required; add it"
    if kind == "extra_forbidden":
        message = "no such field; correct its name or remove it"
    if not field:
        fix = "; it has to be a whole JSON object" if kind in ("json_invalid", "model_type") else ""
        return field, f"{source}: {message}{fix}"
    value = json.dumps(first["input"], default=str)
    return field, f"{field} {value if len(value) <= 60 else value[:57] + '...'}: {message}"


def read_input(model: type[Model], path: Path, *, name: str) -> Model:
    """Reads a JSON file that the user knows as `name` (an option, say). Raises BadInput."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise BadInput(f"{name} {path}: {error.strerror}; name a JSON file") from error
    except ValidationError as error:
        raise BadInput(first_problem(error, f"{name} {path}")[1]) from error


@contextmanager
def blaming(field: str) -> Iterator[None]:
    """Puts the field that named the bad input in front of its problem."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{field} {error}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Returns True if memory ran out: on a CPU torch raises a RuntimeError."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or "can't allocate memory" in words or "out of memory" in words


def sha256(file: Path) -> str:
    """Returns the hex digest of a file's content."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file, whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Replaces a JSON file, whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(value, allow_nan=False) + "\n").encode())


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """Yields the path of a folder to make; once that is done it takes the place of `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        partial = Path(scratch) / "folder"
        yield partial
        shutil.rmtree(output, ignore_errors=True)
        partial.rename(output)


def tell_progress(done: int, total: int) -> None:
    """A line on stdout, which is the worker's heartbeat."""
    print(json.dumps({"done": done, "total": total}), flush=True)


def refused(program: str, error: BadInput) -> int:
    """Prints a refusal in one line and returns its exit code."""
    print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
    return REFUSED


def options_of(argv: list[str], program: str, description: str, *files: str) -> dict[str, Path]:
    """A subcommand's options, all of which name JSON files."""
    parser = argparse.ArgumentParser(prog=f"trainer {program}", description=description)
    for name in files:
        parser.add_argument(f"--{name}", required=True, type=Path, metavar="FILE")
    return vars(parser.parse_args(argv))


def answer_question(
    argv: list[str], program: str, description: str, model: type[Model], answer: Callable[[Model], Any]
) -> int:
    """Runs a subcommand that reads the file --in and replaces the file --out. Returns the exit code."""
    given = options_of(argv, program, description, "in", "out")
    try:
        result = answer(read_input(model, given["in"], name="--in"))
    except BadInput as error:
        return refused(program, error)
    write_json(given["out"], result)
    return 0
