"""Adapters by the hash of their content. test/contract/adapters-from-bucket.test.ts covers the bucket itself; vLLM is
not installed here, so its plugin is held against the interface as vLLM 0.32 has it."""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

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


@pytest.fixture
def plugin(monkeypatch, tmp_path):
    """The plugin's module, and the resolvers that it registers."""
    resolvers = {}
    parts = {
        "vllm": {},
        "vllm.lora": {},
        "vllm.lora.request": {"LoRARequest": SimpleNamespace},
        "vllm.lora.resolver": {
            "LoRAResolver": object,
            "LoRAResolverRegistry": SimpleNamespace(register_resolver=resolvers.__setitem__),
        },
    }
    for name, names in parts.items():
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("CAMPAIGN_STORE", raising=False)
    monkeypatch.setenv("CAMPAIGN_HOME", str(tmp_path))
    from trainer.campaign_adapters import vllm_plugin

    yield vllm_plugin, resolvers
    monkeypatch.delitem(sys.modules, vllm_plugin.__name__)


def test_vllm_is_given_the_folder_of_what_is_named_by_its_content(plugin, monkeypatch, tmp_path):
    module, resolvers = plugin
    module.register()
    assert resolvers == {}, "without a bucket there is nothing to resolve"
    monkeypatch.setenv("CAMPAIGN_STORE", "s3://bucket/prefix")
    module.register()
    sha = put_listing(tmp_path / "cache", **{"adapter_config.json": b"{}", "adapters/0/weights": b"w"})
    [resolver] = resolvers.values()
    request = asyncio.run(resolver.resolve_lora("base", f"a-{sha}"))
    assert (request.lora_name, request.lora_int_id > 0) == (f"a-{sha}", True)
    assert (Path(request.lora_path) / "adapters/0/weights").read_bytes() == b"w"
    for other in ("base", "a-1", f"a-{sha}/..", sha, f"a-{sha.upper()}"):
        assert asyncio.run(resolver.resolve_lora("base", other)) is None


def test_a_listing_leads_nowhere_else(tmp_path):
    cache = AdapterCache(tmp_path, url="s3://bucket", gigabytes=1)
    for path in ("../out", "/etc/out", "a//b", ""):
        with pytest.raises(ValueError, match="no adapter"):
            cache.find(f"a-{put_listing(tmp_path, **{path: b'x'})}")
    with pytest.raises(ValueError, match="no adapter"):
        cache.find(f"a-{put(tmp_path, b'[1]')}")


def test_the_cache_is_bounded_and_keeps_what_was_asked_for_within_an_hour(tmp_path):
    cache = AdapterCache(tmp_path, url="s3://bucket", gigabytes=250e-9)
    old, new, last = (put_listing(tmp_path, weights=body * 100) for body in (b"o", b"n", b"l"))
    folder = cache.find(f"a-{old}")
    os.utime(folder, (1, 1))
    assert cache.find(f"a-{new}").exists() and folder.exists()
    assert cache.find(f"a-{last}").exists() and not folder.exists()
    assert cache.find(f"a-{old}").exists(), "it is fetched anew"
    assert len(list((tmp_path / "served").iterdir())) == 3, "all were asked for within an hour"
