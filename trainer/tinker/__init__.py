"""A learner whose LoRA is trained by a server of the Tinker API. Nothing here imports torch."""
