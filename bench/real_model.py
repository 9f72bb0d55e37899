"""A real model of 135 M parameters: generation against transformers' own, and an optimizer step against bare TRL's.

    python bench/real_model.py [--model .cache/smollm2-135m-instruct] [--rounds 3] [--parts generate,step]

The load is that of a small campaign: 4 prompts of 30 to 80 tokens, 8 rollouts each of up to 64 tokens at temperature 1,
one LoRA of rank 16 on all linear layers, float32. Sides alternate in one process. Prints one JSON object: medians of
seconds on the clock and of the processor, and ratios, ours to theirs (below 1 is faster)."""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.trainer_step import InstantWorker, bare_trl, seconds_per_step
from trainer.train import set_threads

GROUPS, GROUP_SIZE, SAMPLED = 4, 8, 64
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
Seconds = tuple[float, float]


def prompts_of(vocabulary: int) -> list[list[int]]:
    """The same random ids every time."""
    generator = random.Random(5)
    return [
        generator.choices(range(100, vocabulary), k=generator.randint(30, 80))
        for _ in range(GROUPS)
    ]


def timed(work: Callable[[], int]) -> tuple[int, Seconds]:
    """What the work returns; its seconds on the clock and of the processor."""
    began = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - began[0], time.process_time() - began[1])


def generation(model: Path, adapter: Path, rounds: int, threads: int) -> dict[str, Any]:
    """Rollouts of one adapter: tokens a second, both sides on the same prompts."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from trainer.serve.generation import GenerationRequest
    from trainer.serve.worker import build

    engine = build(
        str(model),
        model_name="base",
        max_batch=64,
        threads=threads,
        prefix_cache_mb=256,
        device="cpu",
    )
    engine.registry.load("adapter", str(adapter))
    engine.start()
    plain = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(model), adapter
    ).eval()
    prompts = prompts_of(plain.config.vocab_size)
    width = max(map(len, prompts))
    rows = [prompt for prompt in prompts for _ in range(GROUP_SIZE)]
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    # Turns that end early would make the sides' work unequal: both sample all tokens.
    plain.generation_config.eos_token_id = None
    engine._batch._eos = frozenset()

    def ours(seed: int) -> int:
        tokens: list[int] = []
        done = threading.Semaphore(0)

        def finished(outcome: Any) -> None:
            tokens.append(len(outcome.token_ids))
            done.release()

        for number, row in enumerate(rows):
            engine.submit(
                GenerationRequest(row, "adapter", SAMPLED, seed=1000 * seed + number),
                finished,
            )
        for _ in rows:
            done.acquire()
        return sum(tokens)

    def theirs(_seed: int) -> int:
        with torch.inference_mode():
            out = plain.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                top_k=0,
                max_new_tokens=SAMPLED,
            )
        return (out.shape[1] - width) * len(rows)

    times: dict[str, list[Seconds]] = {"ours": [], "transformers": []}
    for number in range(rounds + 1):  # the first one warms up
        for side, work in (("ours", ours), ("transformers", theirs)):
            tokens, seconds = timed(functools.partial(work, number))
            assert tokens == SAMPLED * len(rows)
            times[side].append(seconds)
    engine.stop()
    engine.join(10)
    return {"tokens": SAMPLED * len(rows)} | compared(
        {side: found[1:] for side, found in times.items()}
    )


def optimizer_step(
    model: Path, folder: Path, rounds: int, threads: int
) -> dict[str, Any]:
    """A whole step of `trainer train` and of bare TRL, without the rollouts."""
    from trainer.train.channel import Channel
    from trainer.train.job import parse_job
    from trainer.train.run import make_trainer

    tasks = [f"s{index}" for index in range(GROUPS)]
    vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
    generator = random.Random(7)
    groups = []
    for task, prompt in zip(tasks, prompts_of(vocabulary), strict=True):
        completions = [
            generator.choices(
                range(100, vocabulary), k=generator.randint(SAMPLED // 3, SAMPLED)
            )
            for _ in range(GROUP_SIZE)
        ]
        rollouts = [
            {
                "rows": [
                    {
                        "prompt_ids": prompt,
                        "completion_ids": ids,
                        "logprobs": [-9.0] * len(ids),
                        "mask": [1] * len(ids),
                    }
                ],
                "reward": generator.random(),
            }
            for ids in completions
        ]
        groups.append({"task": task, "rollouts": rollouts})
    batch = {"groups": groups}
    job = parse_job(
        {
            "base_model": str(model),
            "output_dir": str(folder / "out"),
            "seed": 1,
            "tasks": tasks,
            "steps": 3,  # the first one warms up
            "groups_per_step": GROUPS,
            "group_size": GROUP_SIZE,
            "lora": {"r": 16, "alpha": 16, "dropout": 0, "target_modules": TARGETS},
            "init_adapter": None,
            "learning_rate": 3e-4,
            "max_grad_norm": 1.0,
            "clip": 0.2,
            "loss": "grpo",
            "kl": 0,
            "temperature": 1,
            "advantage": "group",
            "checkpoint_every": 4,
            "threads": threads,
            "dtype": "float32",
            "tokens_per_forward": 1024,
            "gradient_checkpointing": False,
        }
    )
    times: dict[str, list[Seconds]] = {"ours": [], "bare_trl": []}
    for number in range(rounds):
        output = folder / f"round-{number}"
        output.mkdir()
        worker = InstantWorker(output, batch, set(itertools.permutations(tasks)))
        times["ours"] += seconds_per_step(
            make_trainer(job, output, Channel(worker, worker))
        )
        gc.collect()
        times["bare_trl"] += seconds_per_step(bare_trl(job, output, batch))
        gc.collect()
    rows = [rollout["rows"][0] for group in groups for rollout in group["rollouts"]]
    sampled = sum(len(row["completion_ids"]) for row in rows)
    return {"rollouts": len(rows), "loss_tokens": sampled} | compared(times)


def compared(times: dict[str, list[Seconds]]) -> dict[str, Any]:
    """Medians by side, and the first side's to the second's."""
    medians = {
        side: [statistics.median(column) for column in zip(*found, strict=True)]
        for side, found in times.items()
    }
    (ours, ours_cpu), (theirs, theirs_cpu) = medians.values()
    return {
        "rounds": len(next(iter(times.values()))),
        "seconds": {side: round(found[0], 2) for side, found in medians.items()},
        "processor_seconds": {
            side: round(found[1], 2) for side, found in medians.items()
        },
        "ratio": round(ours / theirs, 3),
        "processor_ratio": round(ours_cpu / theirs_cpu, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        type=Path,
        default=Path(".cache/smollm2-135m-instruct"),
        metavar="DIR",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--parts", default="generate,step", help="which of generate, step to run"
    )
    options = parser.parse_args()
    if not (options.model / "config.json").is_file():
        print(
            f"bench/real_model.py: no model in {options.model}; `make real-model` makes it",
            file=sys.stderr,
        )
        raise SystemExit(1)
    set_threads(options.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers.utils import logging as transformers_logging

    from trainer.tests.conftest import save_adapter

    torch.set_num_threads(options.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    report: dict[str, Any] = {
        "model": options.model.name,
        "threads": options.threads,
        "load": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "generate" in options.parts:
            adapter = save_adapter(
                folder / "adapter",
                options.model,
                seed=0,
                targets=TARGETS,
                rank=16,
                alpha=16,
                spread=0.003,
            )
            report["generation"] = generation(
                options.model, adapter, options.rounds, options.threads
            )
            gc.collect()
        if "step" in options.parts:
            report["step"] = optimizer_step(
                options.model, folder, options.rounds, options.threads
            )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
