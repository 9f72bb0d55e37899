"""
Between messages and token ids. Invariant: text is rendered and tokenized in this one place, by the model folder's own
chat template and tokenizer.
"""

from __future__ import annotations

from pathlib import Path

from trainer.serve.errors import BadRequest


class ChatFormat:
    """Chat template and tokenizer of a model folder."""

    def __init__(self, folder: Path, eos: frozenset[int]) -> None:
        """`eos`: the ids that end a turn; what is shown to clients leaves them out."""
        # Not AutoTokenizer: its import brings torch along, which the front has no use for.
        from transformers import PreTrainedTokenizerFast

        if not (folder / "tokenizer.json").is_file():
            raise ValueError(
                f"--model {folder}: no tokenizer.json there; save the model's fast tokenizer into the folder"
            )
        self._tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        if not self._tokenizer.chat_template:
            raise ValueError(f"--model {folder}: no chat template there; add chat_template.jinja to the folder")
        self._eos = eos
        self._tokens = self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer))))

    def prompt_ids(self, messages: list[dict], tools: list[dict] | None) -> list[int]:
        """Token ids of the conversation, ending where the assistant's turn begins."""
        return self._ids(self._rendered(messages, tools, ends=False))

    def answer_ids(self, messages: list[dict], answer: dict, tools: list[dict] | None) -> list[int]:
        """Token ids that the assistant's message is written with after `prompt_ids` of those before it, its end and
        whatever the template puts after it included."""
        prompt = self._rendered(messages, tools, ends=False)
        whole = self._rendered([*messages, answer], tools, ends=True)
        if not whole.startswith(prompt):
            raise BadRequest("messages: the model's chat template changes what was before an answer", param="messages")
        return self._ids(whole[len(prompt) :])

    def _rendered(self, messages: list[dict], tools: list[dict] | None, *, ends: bool) -> str:
        """`ends`: with the last message; else where the assistant's turn begins."""
        try:
            return self._tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=not ends, tokenize=False
            )
        except Exception as error:  # whatever a template's own code raises is about its input
            raise BadRequest(f"messages: the model's chat template refuses them ({error})", param="messages") from error

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids

    def text(self, ids: list[int]) -> str:
        """Text of sampled ids, without the end-of-turn token."""
        return self._tokenizer.decode(ids[:-1] if ids and ids[-1] in self._eos else ids, skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """One token as the tokenizer spells it; models may have more rows than the tokenizer has tokens."""
        return self._tokens[token_id] if token_id < len(self._tokens) else f"<{token_id}>"
