"""
Closed-loop load on the embedded policy server: N clients play synthetic multi-turn episodes and send their next turn
as soon as they have the answer to the last one. Invariant: every client always has exactly one request under way, so
the figure is the server's maximum for that concurrency.

    python bench/policy_server.py --model models/base      # in process and over HTTP; one JSON object on stdout

An episode is a first prompt (a system turn that all tasks share, then the task's own words) and turns of sampled
tokens, each followed by the tokens of a tool result. `group_size` clients in a row play the same task, as in GRPO.
The model is not asked to make sense: turns end after `--sampled` tokens or at its own end-of-turn token, whichever
comes first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.policy_load import RawClient, Script, Tally, words_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="model folder; without it a random Lfm2 of 0.9 M parameters")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="measured time of each part, after 2 s of warming up"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sampled", type=int, default=8, help="tokens of a turn at most")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--system", type=int, default=70, help="tokens of the system turn")
    parser.add_argument("--task", type=int, default=15, help="tokens of the first user turn")
    parser.add_argument("--tool", type=int, default=20, help="tokens of a tool result")
    parser.add_argument(
        "--adapters", type=int, default=1, help="0: the base model; n: clients are spread over n adapters"
    )
    parser.add_argument("--prefix-cache-mb", type=int, default=256)
    parser.add_argument("--parts", default="engine,http", help="which of engine, http to run")
    parser.add_argument("--profile", metavar="FILE", help="cProfile of the generation thread in the engine part")
    return parser.parse_args()


def bench_engine(args: argparse.Namespace, model: Path, adapters: list[Path]) -> dict:
    """No HTTP, no text: token ids straight into the engine, the next turn from its own callback."""
    from trainer.serve.engine import Engine
    from trainer.serve.messages import GenerationRequest, Outcome, RequestError

    options = {"max_batch": args.clients, "threads": args.threads, "prefix_cache_mb": args.prefix_cache_mb}
    engine = Engine(model, **options)
    for n, path in enumerate(adapters):
        engine.registry.load(f"adapter-{n}", str(path))
    script, eos = Script(args.system, args.task, args.tool, list(words_of(model).values())), min(engine.eos)
    tally, stop = Tally(), threading.Event()

    def first(client: int, episode: int) -> list[int]:
        return [*script.system, eos, *script.task(client, episode), eos]

    def play(client: int, episode: int, turn: int, prompt: list[int]) -> None:
        def done(outcome: Outcome | RequestError) -> None:
            if stop.is_set() or isinstance(outcome, RequestError):
                return
            tally.requests += 1
            tally.tokens += len(outcome.token_ids)
            if turn + 1 < args.turns:
                ids = outcome.token_ids if outcome.finish_reason == "stop" else [*outcome.token_ids, eos]
                play(client, episode, turn + 1, [*prompt, *ids, *script.tool(client, episode, turn), eos])
            else:
                play(client, episode + 1, 0, first(client, episode + 1))

        name = f"adapter-{client % len(adapters)}" if adapters else "base"
        seed = (client * 1000 + episode) * 100 + turn
        engine.submit(GenerationRequest(prompt, name, args.sampled, seed=seed), done)

    if args.profile:
        _profile(engine, args.profile)
    engine.start()
    for client in range(args.clients):
        play(client, 0, 0, first(client, 0))
    time.sleep(2)
    tally.__init__()
    before = dict(vars(engine.metrics))
    time.sleep(args.seconds)
    figures = tally.figures()
    delta = {k: v - before[k] for k, v in vars(engine.metrics).items() if isinstance(v, int | float)}
    stop.set()
    engine.stop(10)
    return figures | _batch_figures(delta)


def _profile(engine, file: str) -> None:
    import cProfile

    run = engine.run

    def profiled() -> None:
        profile = cProfile.Profile(time.thread_time)
        profile.runcall(run)
        profile.dump_stats(file)

    engine._thread = threading.Thread(target=profiled)


async def bench_http(args: argparse.Namespace, model: Path, adapters: list[Path]) -> dict:
    """The same episodes as chat completions over keep-alive connections, from this process."""
    import httpx

    script = Script(args.system, args.task, args.tool, list(words_of(model)))

    command = [sys.executable, "-m", "trainer", "serve", "--model", str(model), "--port", "0", "--exit-with-parent"]
    command += ["--max-batch", str(args.clients), "--threads", str(args.threads)]
    command += ["--prefix-cache-mb", str(args.prefix_cache_mb)]
    server = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    url = json.loads(await server.stdout.readline())["url"]
    tally = Tally(server.pid)

    async def play(http: RawClient, client: int) -> None:
        name = f"adapter-{client % len(adapters)}" if adapters else "base"
        for episode in range(10**9):
            messages = [
                {"role": "system", "content": " ".join(script.system)},
                {"role": "user", "content": " ".join(script.task(client, episode))},
            ]
            for turn in range(args.turns):
                body = {
                    "model": name,
                    "messages": messages,
                    "max_tokens": args.sampled,
                    "temperature": 1,
                    "seed": (client * 1000 + episode) * 100 + turn,
                    "logprobs": True,
                    "return_token_ids": True,
                }
                answer = json.loads(await http.post("/v1/chat/completions", json.dumps(body).encode()))
                choice = answer["choices"][0]
                tally.requests += 1
                tally.tokens += len(choice["token_ids"])
                result = " ".join(script.tool(client, episode, turn))
                said = {"role": "assistant", "content": choice["message"]["content"] or ""}
                messages = [*messages, said, {"role": "tool", "content": result, "tool_call_id": "call_0"}]

    async with httpx.AsyncClient(base_url=url) as http:
        for n, path in enumerate(adapters):
            body = {"lora_name": f"adapter-{n}", "lora_path": str(path)}
            (await http.post("/v1/load_lora_adapter", json=body)).raise_for_status()
    clients = [await RawClient.connect(url) for _ in range(args.clients)]
    players = [asyncio.create_task(play(http, n)) for n, http in enumerate(clients)]
    await asyncio.sleep(2)
    tally.__init__(server.pid)
    before = await _metrics(url)
    await asyncio.sleep(args.seconds)
    figures = tally.figures()
    after = await _metrics(url)
    delta = {name: after[name] - before[name] for name in after}
    for player in players:
        player.cancel()
    await asyncio.gather(*players, return_exceptions=True)
    server.stdin.close()
    await server.wait()
    return figures | _batch_figures(delta)


def _batch_figures(delta: dict[str, float]) -> dict:
    """Means over the steps of the measured time."""
    return {
        "batch_rows": round(delta["step_rows"] / delta["steps"], 1),
        "step_tokens": round(delta["step_tokens"] / delta["steps"], 1),
        "step_milliseconds": round(1000 * delta["step_seconds"] / delta["steps"], 2),
        "cached_share": round(delta["cached_tokens"] / delta["prompt_tokens"], 3),
    }


async def _metrics(url: str) -> dict[str, float]:
    import httpx

    async with httpx.AsyncClient(base_url=url) as http:
        text = (await http.get("/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    names = ("steps", "step_rows", "step_tokens", "step_seconds", "prompt_tokens", "cached_tokens")
    return {name: float(values[f"policy_server_{name}_total"]) for name in names}


def main() -> None:
    args = arguments()
    from trainer.tests.conftest import save_adapter, save_tiny_model

    with tempfile.TemporaryDirectory() as folder:
        model = args.model
        if model is None:
            model = save_tiny_model(Path(folder) / "model", size="bench", spread=0.02)
        targets = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]
        adapters = [
            save_adapter(Path(folder) / f"adapter-{n}", model, seed=n, targets=targets, rank=16, alpha=16, spread=0.02)
            for n in range(args.adapters)
        ]
        report: dict = {key: getattr(args, key) for key in ("clients", "threads", "adapters", "sampled", "turns")}
        if "engine" in args.parts:
            report["engine"] = bench_engine(args, model, adapters)
        if "http" in args.parts:
            report["http"] = asyncio.run(bench_http(args, model, adapters))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
