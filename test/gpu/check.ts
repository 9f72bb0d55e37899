/**
 * `make gpu-check`: a whole campaign on a random Qwen3, with vLLM and a trainer on one GPU, within ten minutes. Prints device, versions and figures as a
 * table for docs/results.md. With DEVICE=cpu it runs a smaller model on vLLM's build for CPU, as a check of itself.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/cli/ports';
import { CampaignRun, reportOf, repository } from '../support/campaign-run';

const { VLLM = 'vllm', DEVICE = 'cuda' } = process.env;
const isCpu = DEVICE === 'cpu';
const root = mkdtempSync(join(tmpdir(), 'gpu-check-'));
const model = join(root, 'model');
const python = join(repository, '.venv/bin/python');
const inPython = (program: string, code: string, ...words: string[]) =>
  execFileSync(program, ['-c', code, ...words], { cwd: repository, encoding: 'utf8' }).trim();

/** A random Qwen3 of about 100 million parameters (1 million on CPU) with a tokenizer over bytes. */
function makeModel(): void {
  const sizes = isCpu ? '128, 4, 32, 256, 3' : '1024, 16, 64, 3072, 8';
  inPython(
    python,
    `
import sys; sys.path.insert(0, "trainer/tests")
from pathlib import Path
import torch
from transformers import AutoConfig, Qwen3Config, Qwen3ForCausalLM
from conftest import save_hermes_model
folder = save_hermes_model(Path(sys.argv[1]))
kept = AutoConfig.from_pretrained(folder)
hidden, heads, width, inner, layers = ${sizes}
torch.manual_seed(1)
Qwen3ForCausalLM(Qwen3Config(
    vocab_size=kept.vocab_size, max_position_embeddings=2048, hidden_size=hidden, num_attention_heads=heads,
    num_key_value_heads=heads // 2, head_dim=width, intermediate_size=inner, num_hidden_layers=layers,
    tie_word_embeddings=True, bos_token_id=None, eos_token_id=2, pad_token_id=0, dtype="bfloat16",
)).to(torch.bfloat16).save_pretrained(folder)
`,
    model,
  );
}

/** Starts vLLM with the flags of docs/gpu.md and waits until it answers. */
async function startVllm(): Promise<{ url: string; server: ChildProcess }> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const modules = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'];
  const forCpu = ['--enforce-eager', '--no-enable-chunked-prefill', '--max-num-batched-tokens', '8192'];
  const flags = [
    ...['serve', model, '--served-model-name', 'gpu-check', '--host', '127.0.0.1', '--port', new URL(url).port],
    ...['--dtype', 'bfloat16', '--max-model-len', '2048', '--gpu-memory-utilization', '0.4'],
    ...['--enable-lora', '--max-lora-rank', '64', '--max-loras', '4', '--lora-target-modules', ...modules],
    ...['--generation-config', 'vllm', '--enable-auto-tool-choice', '--tool-call-parser', 'hermes'],
    ...['--enable-scale-out', ...(isCpu ? forCpu : [])],
  ];
  const cpu = { VLLM_CPU_KVCACHE_SPACE: '1', VLLM_CPU_OMP_THREADS_BIND: 'nobind', OMP_NUM_THREADS: '1' };
  const server = spawn(VLLM, flags, {
    env: {
      ...process.env,
      ...{ VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True', VLLM_NO_USAGE_STATS: '1', HF_HUB_OFFLINE: '1' },
      ...(isCpu && cpu),
    },
    stdio: ['ignore', 2, 2],
    detached: true,
  });
  const isUp = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isUp())) {
    if (server.exitCode !== null) throw new Error(`vLLM ended with exit code ${server.exitCode}: see its log above`);
    await sleep(500);
  }
  return { url, server };
}

const minutes = (since: number) => `${((Date.now() - since) / 60_000).toFixed(1)} min`;
const percent = (value?: number | null) => (value == null ? '-' : (100 * value).toFixed(1));

async function main(): Promise<void> {
  const torch =
    'import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu")';
  const trainer = inPython(python, torch);
  if (!isCpu && trainer.endsWith(' cpu'))
    throw new Error(`.venv has torch ${trainer}: install trainer/torch.lock for CUDA, or give DEVICE=cpu`);
  const versions = ['transformers', 'trl', 'peft'].map((name) =>
    inPython(python, `import importlib.metadata as m; print("${name}", m.version("${name}"))`),
  );
  makeModel();
  const began = Date.now();
  const { url, server } = await startVllm();
  const startup = minutes(began);
  const started = Date.now();
  let run: CampaignRun | undefined;
  try {
    const folder = join(root, 'campaign');
    cpSync(join(repository, 'test/fixtures/gpu'), folder, { recursive: true });
    const file = join(folder, 'campaign.yaml');
    const text = readFileSync(file, 'utf8').replace('path: MODEL', `path: ${model}`).replace('URL', url);
    writeFileSync(file, text);
    const home = { root: join(root, 'home') };
    // Forced, since a random model calls no tool.
    run = new CampaignRun(home, file, ['--force']);
    run.child.stdout?.pipe(process.stderr);
    await run.finish();
    const { version } = (await (await fetch(`${url}/version`)).json()) as { version: string };
    const { campaign, capabilities = [], arms = [] } = reportOf(home, 'gpu-check');
    const found = execFileSync('grep', ['-rhoE', '"logprob_gap": ?[0-9.e-]+', home.root], { encoding: 'utf8' });
    const gaps = found.match(/[0-9.e-]+$/gm)?.map(Number) ?? [];
    const rows: [string, string][] = [
      ['device; torch', trainer],
      ['vLLM; others', [version, ...versions].join('; ')],
      ['vLLM ready after', startup],
      ['campaign', `${campaign.status} in ${minutes(started)}`],
      ...capabilities.map(({ name, status, training }): [string, string] => [
        name,
        `${status}, ${training?.steps ?? 0} steps; reward ${training?.rewardCurve?.points.map(({ reward }) => reward.toFixed(2)).join(' ') ?? '-'}`,
      ]),
      ['log-prob gap, largest of the steps', gaps.length > 0 ? Math.max(...gaps).toFixed(4) : '-'],
      ...arms.map(({ name, successRate }): [string, string] => [
        `${name}, success`,
        `${percent(successRate?.value)} (n ${successRate?.n ?? 0})`,
      ]),
    ];
    console.log(
      ['| what | value |', '| --- | --- |', ...rows.map(([what, value]) => `| ${what} | ${value} |`)].join('\n'),
    );
  } finally {
    if (run && !run.ended) run.child.kill('SIGINT');
    process.kill(-server.pid!, 'SIGKILL');
  }
}

void main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
