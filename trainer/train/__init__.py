"""Training of one LoRA on rollouts, and what every learner shares."""

import os

# Before TRL and transformers are imported.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up
