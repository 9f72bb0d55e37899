"""What a converted model can do. Invariant: it is asked through the embedded server's own chat format and engine, the
path that campaigns take, greedily: the same folder gives the same answers."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from trainer.serve.chat import ChatFormat
from trainer.serve.errors import RequestError
from trainer.serve.generation import GenerationRequest, Outcome
from trainer.serve.worker import build

MAX_TOKENS = 48
LONGEST_PERIOD, REPEATS = 12, 4


@dataclass(frozen=True)
class Question:
    """`expected`: what the answer has to contain, if anything."""

    prompt: str
    expected: str = ""


QUESTIONS = (
    Question("What is the capital of France?", expected="Paris"),
    Question("What color is the sky on a clear day?", expected="blue"),
    Question("Write one short sentence about a river."),
    Question("Name three animals that live on a farm."),
)


def ask(folder: Path, questions: tuple[Question, ...], threads: int) -> list[Outcome]:
    """The greedy answers, in the order of the questions. Raises RequestError, ValueError for an unusable folder."""
    engine = build(
        str(folder), model_name="base", max_batch=len(questions), threads=threads, prefix_cache_mb=0, device="cpu"
    )
    chat = ChatFormat(folder, engine.eos)
    answers: list[Outcome | RequestError | None] = [None] * len(questions)
    finished = threading.Semaphore(0)
    engine.start()
    try:
        for number, question in enumerate(questions):

            def done(answer: Outcome | RequestError, number: int = number) -> None:
                answers[number] = answer
                finished.release()

            prompt = chat.prompt_ids([{"role": "user", "content": question.prompt}], None)
            engine.submit(GenerationRequest(prompt, "base", MAX_TOKENS, temperature=0), done)
        for _ in questions:
            finished.acquire()
    finally:
        engine.stop()
        engine.join(10)
    for answer in answers:
        if isinstance(answer, RequestError):
            raise answer
    return answers  # type: ignore[return-value]


def judge(question: Question, text: str, ids: list[int]) -> str | None:
    """What is wrong with an answer."""
    if not text.strip():
        return "it is empty"
    if loops(ids):
        return "it repeats itself"
    if question.expected.lower() not in text.lower():
        return f"it does not say {question.expected}"
    return None


def loops(ids: list[int]) -> bool:
    """Whether the ids end in the same few tokens again and again."""
    return any(
        ids[-period * REPEATS :] == ids[-period:] * REPEATS
        for period in range(1, LONGEST_PERIOD + 1)
        if len(ids) >= period * REPEATS
    )


def check(folder: Path, threads: int) -> tuple[list[dict[str, str]], list[str]]:
    """Questions with their answers, and what is wrong with them."""
    outcomes = ask(folder, QUESTIONS, threads)
    eos = {outcome.token_ids[-1] for outcome in outcomes if outcome.finish_reason == "stop"}
    chat = ChatFormat(folder, frozenset(eos))
    texts = [chat.text(outcome.token_ids).strip() for outcome in outcomes]
    answers = [{"prompt": q.prompt, "answer": text} for q, text in zip(QUESTIONS, texts, strict=True)]
    judged = [judge(q, text, o.token_ids) for q, text, o in zip(QUESTIONS, texts, outcomes, strict=True)]
    problems = [
        f"{question.prompt} {text!r}: {problem}"
        for question, text, problem in zip(QUESTIONS, texts, judged, strict=True)
        if problem
    ]
    return answers, problems
