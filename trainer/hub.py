"""Base models of a model hub: size and licence, and their download into the cache of huggingface_hub, by its variables
(HF_HOME, HF_ENDPOINT, HF_TOKEN).

Invariant: weights are downloaded last, so that a snapshot with all its weights is whole."""

import os
import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from trainer.command import BadInput, Closed, sha256, tell_progress

SUFFIXES = {".json", ".jinja", ".txt", ".model", ".safetensors"}
"""Files of a model in the format of transformers; other formats of the same weights are left out."""


class Question(Closed):
    """`hub`: OWNER/NAME; `revision`: a branch, tag or commit; `download`: false to ask for size and licence alone."""

    hub: str = Field(min_length=1)
    revision: str = Field(min_length=1)
    download: bool


def fetch(question: Question) -> dict[str, Any]:
    """{"commit", "bytes", "license"}; reports progress in bytes. Raises BadInput; ends with code 1 if the hub can't be
    reached."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = f"{question.hub} at {constants.ENDPOINT}"
    try:
        info = HfApi().model_info(question.hub, revision=question.revision, files_metadata=True)
        files = [
            file
            for file in info.siblings or []
            if Path(file.rfilename).suffix in SUFFIXES and "/" not in file.rfilename
        ]
        if not any(file.rfilename.endswith(".safetensors") for file in files):
            raise BadInput(f"hub {name}: no weights in *.safetensors; name a model that has them")
        if question.download:
            _download(question, info.sha, sorted(files, key=lambda file: file.rfilename.endswith(".safetensors")))
    except GatedRepoError:
        raise BadInput(f"hub {name}: accept its licence on the hub, and set HF_TOKEN to a token of yours") from None
    except RevisionNotFoundError:
        raise BadInput(f"hub {name}: no revision {question.revision}; correct baseModel.revision") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise BadInput(f"hub {name}: no such model; correct baseModel.hub, or set HF_TOKEN if it is private") from None
    except (HfHubHTTPError, HTTPError, OfflineModeIsEnabled, OSError) as error:
        first = str(error).strip().splitlines()[0]
        sys.exit(f"hub {name}: {first}; try again, or name a mirror in HF_ENDPOINT")
    license = getattr(info.card_data, "license", None)
    return {"commit": info.sha, "bytes": sum(file.size or 0 for file in files), "license": license}


def _download(question: Question, commit: str, files: list[Any]) -> None:
    """Downloads what is not in the cache yet. Raises BadInput for weights that are not those that the hub lists."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.utils import tqdm

    total, done = sum(file.size or 0 for file in files), 0

    class Progress(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})
            self.seen = kwargs.get("initial", 0)

        def update(self, n: float | None = 1) -> None:
            self.seen += n or 0
            tell_progress(done + int(self.seen), total)

    for file in files:
        known = try_to_load_from_cache(question.hub, file.rfilename, revision=commit)
        path = hf_hub_download(question.hub, file.rfilename, revision=commit, tqdm_class=Progress)
        if file.lfs is not None and not isinstance(known, str) and sha256(Path(path)) != file.lfs.sha256:
            Path(path).resolve().unlink()  # the blob; then its link in the snapshot
            Path(path).unlink()
            raise BadInput(f"{file.rfilename} of {question.hub}: damaged on the way, and removed; start again")
        done += file.size or 0
        tell_progress(done, total)
    # The cache remembers which commit a branch was.
    hf_hub_download(question.hub, "config.json", revision=question.revision)
