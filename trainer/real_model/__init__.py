"""The real base model: a small instruction-tuned language model from a Python package, as a transformers folder."""
