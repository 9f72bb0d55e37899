"""Between messages and token ids: text is rendered and tokenized in this one place, by the model folder's own chat
template and tokenizer. Calls are read by calls.py."""

import inspect
from pathlib import Path
from typing import Any

from trainer.command import BadInput
from trainer.model_folder import eos_ids
from trainer.serve.calls import calls_shown_in
from trainer.serve.messages import BadRequest


class ChatFormat:
    """Chat template and tokenizer of a model folder."""

    def __init__(self, folder: Path) -> None:
        """Raises BadInput for a folder without tokenizer, chat template or end of turns."""
        # Not AutoTokenizer: its import brings torch along, which the front has no use for.
        from transformers import PreTrainedTokenizerFast

        if not (folder / "tokenizer.json").is_file():
            raise BadInput(f"{folder}: no tokenizer.json there; save the model's fast tokenizer into the folder")
        self._tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        if not self._tokenizer.chat_template:
            raise BadInput(f"{folder}: no chat template there; add chat_template.jinja to the folder")
        self.eos = eos_ids(folder)
        """The ids that end a turn; what is shown to clients leaves them out."""
        self._tokens = self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer))))
        # A request that sets one of these could bring a template of its own, which may compute for ever.
        self._reserved = {"messages", *inspect.signature(self._tokenizer.apply_chat_template).parameters}
        self.parse_calls = calls_shown_in(self._tokenizer.chat_template)

    def prompt_ids(
        self,
        messages: list[dict],
        tools: list[dict] | None,
        *,
        ends: bool = False,
        variables: dict[str, Any] | None = None,
    ) -> list[int]:
        """Token ids of the conversation, ending where the assistant's turn begins, or with the last message.
        `variables` are the template's. Raises BadRequest."""
        if refused := sorted(self._reserved.intersection(variables or {})):
            problem = f"{', '.join(refused)} can't be set here; leave it out"
            raise BadRequest(f"chat_template_kwargs: {problem}", "chat_template_kwargs")
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=not ends, tokenize=False, **(variables or {})
            )
        except Exception as error:  # whatever a template's own code raises is about its input
            raise BadRequest(f"messages: the model's chat template refuses them ({error})", "messages") from error
        return self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids

    def text(self, ids: list[int]) -> str:
        """Text of sampled ids, without the end-of-turn token."""
        return self._tokenizer.decode(ids[:-1] if ids and ids[-1] in self.eos else ids, skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """One token as the tokenizer spells it; models may have more rows than the tokenizer has tokens."""
        return self._tokens[token_id] if token_id < len(self._tokens) else f"<{token_id}>"
