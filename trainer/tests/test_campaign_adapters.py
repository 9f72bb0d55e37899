"""Adapters by the hash of their content. test/contract/adapters-from-bucket.test.ts covers the bucket itself,
`make test-vllm` the plugin."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from trainer.campaign_adapters import AdapterCache


def put(cache: Path, body: bytes) -> str:
    """An object of the cache, as a worker leaves it."""
    sha = hashlib.sha256(body).hexdigest()
    path = cache / "objects" / sha[:2] / sha
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return sha


def put_listing(cache: Path, **files: bytes) -> str:
    listed = [{"path": path, "sha256": put(cache, body), "bytes": len(body)} for path, body in files.items()]
    return put(cache, json.dumps({"files": listed}).encode())


def test_an_adapter_is_named_by_its_content_and_nothing_else(tmp_path):
    cache = AdapterCache(tmp_path, url="s3://bucket", gigabytes=1)
    sha = put_listing(tmp_path, **{"adapter_config.json": b"{}", "adapters/0/weights": b"w"})
    assert (cache.find(f"a-{sha}") / "adapters/0/weights").read_bytes() == b"w"
    for other in ("base", "a-1", f"a-{sha}/..", sha, f"a-{sha.upper()}"):
        assert cache.find(other) is None


def test_a_listing_leads_nowhere_else(tmp_path):
    cache = AdapterCache(tmp_path, url="s3://bucket", gigabytes=1)
    for path in ("../out", "/etc/out", "a//b", ""):
        with pytest.raises(ValueError, match="no adapter"):
            cache.find(f"a-{put_listing(tmp_path, **{path: b'x'})}")
    with pytest.raises(ValueError, match="no adapter"):
        cache.find(f"a-{put(tmp_path, b'[1]')}")


def test_the_cache_is_bounded_and_keeps_adapters_used_within_an_hour(tmp_path):
    cache = AdapterCache(tmp_path, url="s3://bucket", gigabytes=250e-9)
    old, new, last = (put_listing(tmp_path, weights=body * 100) for body in (b"o", b"n", b"l"))
    folder = cache.find(f"a-{old}")
    os.utime(folder, (1, 1))
    assert cache.find(f"a-{new}").exists() and folder.exists()
    assert cache.find(f"a-{last}").exists() and not folder.exists()
    assert cache.find(f"a-{old}").exists(), "it is fetched again"
    assert len(list((tmp_path / "served").iterdir())) == 3, "all were asked for within an hour"
