"""JSON that comes from outside, parsed by pydantic. Invariant: what does not fit its model is told in one line that
names the first bad field, its value and what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

Kind = TypeVar("Kind", bound=BaseModel)


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
    said = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
    if kind == "missing":
        return Problem(field, f"{field}: required; add it")
    if kind == "extra_forbidden":
        said = "no such field; correct its name or remove it"
    if not field:
        return Problem(field, f"{whole}: {said}; it has to be a whole JSON object")
    value = json.dumps(first["input"], default=str)
    return Problem(field, f"{field} {value if len(value) <= 60 else value[:57] + '...'}: {said}")


def read_input(kind: type[Kind], path: Path, *, name: str, refusal: type[Exception]) -> Kind:
    """Reads a JSON file that the user knows as `name` (an option, say). Raises `refusal`."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise refusal(f"{name} {path}: {error.strerror}; name a readable JSON file") from error
    except ValidationError as error:
        raise refusal(first_problem(error, f"{name} {path}").line) from error
