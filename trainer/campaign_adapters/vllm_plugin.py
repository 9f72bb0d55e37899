"""vLLM asks this plugin for adapters that it has not loaded: entry point vllm.general_plugins, which vLLM calls in each
of its processes."""

import asyncio

from vllm.lora.request import LoRARequest
from vllm.lora.resolver import LoRAResolver, LoRAResolverRegistry

from . import AdapterCache, adapters_of_store


class CampaignResolver(LoRAResolver):
    """Takes adapters from the bucket of a campaign's store."""

    def __init__(self, cache: AdapterCache) -> None:
        self._cache = cache

    async def resolve_lora(self, base_model_name: str, lora_name: str) -> LoRARequest | None:
        """None for what is no adapter in the bucket. Raises where the bucket does not answer, or holds other bytes."""
        folder = await asyncio.to_thread(self._cache.find, lora_name)
        if folder is None:
            return None
        return LoRARequest(lora_name=lora_name, lora_int_id=1 + int(lora_name[2:9], 16), lora_path=str(folder))


def register() -> None:
    """Does nothing where CAMPAIGN_STORE is not set."""
    if cache := adapters_of_store():
        LoRAResolverRegistry.register_resolver("campaign", CampaignResolver(cache))
