"""LoRA adapters by the hash of their content, from the bucket of a campaign's store, for policy servers that share no
folder with its workers (docs/policy-server.md): the embedded one, and vLLM by the plugin beside this file.

Invariants: what is asked for is named by its sha256 and nothing else, and comes from CAMPAIGN_STORE alone; what is
given out has the bytes of its name. Nothing of the trainer is imported, since vLLM has an environment of its own."""

import hashlib
import json
import os
import re
import shutil
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

SHA = re.compile(r"[0-9a-f]{64}")
HOUR_SECONDS = 3600


class AdapterCache:
    """Adapters of a bucket in `served/<sha256>` of a local folder; where that is a worker's cache, what lies in its
    `objects` is not fetched. Methods may be called from any thread; one fetches at a time."""

    def __init__(self, folder: Path, *, url: str, gigabytes: float) -> None:
        """`url`: s3://BUCKET/PREFIX. Raises ValueError for another one, ImportError without boto3."""
        import boto3
        from botocore.config import Config

        found = re.fullmatch(r"s3://([^/]+)/?(.*)", url)
        if not found:
            raise ValueError(f"CAMPAIGN_STORE {url!r}: write s3://BUCKET/PREFIX")
        self._bucket, self._prefix = found[1], found[2].strip("/")
        self._folder, self._bytes = folder, gigabytes * 1e9
        # Endpoint, region and credentials are those of every AWS tool. Others than AWS know no buckets by host names.
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        style = {"addressing_style": "path"} if endpoint else {}
        config = Config(s3=style, response_checksum_validation="when_required", connect_timeout=5)
        self._client = boto3.client("s3", config=config, region_name=os.environ.get("AWS_REGION"))
        self._lock = threading.Lock()

    def find(self, name: str) -> Path | None:
        """The folder of what a worker calls `a-<sha256>`; None where the name is another, or the bucket has no such
        content. Raises ValueError for other bytes, and what boto3 raises where the bucket does not answer."""
        sha = name.removeprefix("a-")
        if name == sha or not SHA.fullmatch(sha):
            return None
        folder = self._folder / "served" / sha
        with self._lock:
            if folder.is_dir():
                os.utime(folder)
                return folder
            folder.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=self._folder) as aside:
                listing, adapter = Path(aside, "listing"), Path(aside, "adapter")
                if not self._bring(sha, listing):
                    return None
                for path, part in _files_in(listing.read_bytes()):
                    (adapter / path).parent.mkdir(parents=True, exist_ok=True)
                    if not self._bring(part, adapter / path):
                        raise ValueError(f"{path} of adapter {sha} is not in the bucket")
                self._make_room(_size(adapter))
                return adapter.rename(folder)

    def _bring(self, sha: str, target: Path) -> bool:
        """Writes an object to `target`; returns False if the bucket lacks it. Raises ValueError for other bytes."""
        path = f"objects/{sha[:2]}/{sha}"
        if _sha256(self._folder / path) == sha:
            os.link(self._folder / path, target)
            return True
        try:
            self._client.download_file(self._bucket, f"{self._prefix}/{path}".lstrip("/"), str(target))
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                return False
            raise
        if _sha256(target) != sha:
            raise ValueError(f"{path} in the bucket does not hold the bytes of its name")
        return True

    def _make_room(self, more: int) -> None:
        """Removes what was not asked for for longest, and not within an hour, where there is more than may be."""
        used = {folder: folder.stat().st_mtime for folder in (self._folder / "served").iterdir()}
        over = sum(map(_size, used)) + more - self._bytes
        for folder in sorted(used, key=used.__getitem__):
            if over <= 0 or time.time() - used[folder] < HOUR_SECONDS:
                return
            over -= _size(folder)
            shutil.rmtree(folder)


def adapters_of_store() -> AdapterCache | None:
    """Returns the cache set by CAMPAIGN_STORE, CAMPAIGN_HOME and CAMPAIGN_CACHE_GB; None without a bucket."""
    url, home = os.environ.get("CAMPAIGN_STORE"), Path(os.environ.get("CAMPAIGN_HOME", ".campaigns"))
    gigabytes = float(os.environ.get("CAMPAIGN_CACHE_GB", "50"))
    return AdapterCache(home.resolve() / "cache", url=url, gigabytes=gigabytes) if url else None


def _files_in(listing: bytes) -> list[tuple[str, str]]:
    """Paths inside a folder, and hashes of its files. Raises ValueError for what lists none."""
    try:
        files = [(file["path"], file["sha256"]) for file in json.loads(listing)["files"]]
        outside = any(part in ("", ".", "..") for path, _ in files for part in path.split("/"))
        if not outside and all(SHA.fullmatch(sha) for _, sha in files):
            return files
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no adapter: {error!r}") from error
    raise ValueError("it is no adapter: a path leads out of it, or a hash is none")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*"))


def _sha256(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
