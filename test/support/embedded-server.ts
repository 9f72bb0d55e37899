/** Starts the real embedded policy server (`python -m trainer serve`) on a free port; it ends with its stdin. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ArtifactStore } from '../../src/store/store';
import { createPolicyClient, type PolicyClient } from '../../src/policy/client';
import { writeAdapter } from '../../src/policy/base-model';
import { createMerger } from '../../src/policy/merge';

const root = join(__dirname, '..', '..');
/** The interpreter of the trainer's virtual environment. */
export const python = join(root, '.venv', 'bin', 'python');

export interface EmbeddedServer {
  url: string;
  /** The id of the base model that it serves, as it says itself. */
  base: string;
  stop(): Promise<void>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

export async function startEmbeddedServer({
  model,
  args = [],
  env = {},
}: {
  model: string;
  /** Further options of `trainer serve`. */
  args?: string[];
  env?: Record<string, string>;
}): Promise<EmbeddedServer> {
  const options = ['-m', 'trainer', 'serve', '--model', model, '--exit-with-parent', ...args];
  const child = spawn(python, args.includes('--port') ? options : [...options, '--port', '0'], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const stderr: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk.toString()));
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), ended.then(() => [undefined])])) as [string | undefined];
  if (line === undefined) throw new Error(`the policy server did not start: ${stderr.join('').slice(-2000)}`);
  const { url } = JSON.parse(line) as { url: string };
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { root: string }[] };
  return {
    url,
    base: data[0]!.root,
    stop: async () => {
      child.stdin.end();
      await ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Writes a LoRA with random factors: enough to be seen, and little enough for the model to work. */
export async function writeRandomAdapter({
  seed,
  ...o
}: Parameters<typeof writeAdapter>[0] & { seed: number }): Promise<void> {
  await writeAdapter(o);
  const script = `
import sys, torch
from safetensors.torch import load_file, save_file
file = sys.argv[1] + '/adapter_model.safetensors'
torch.manual_seed(int(sys.argv[2]))
save_file({name: 0.05 * torch.randn_like(factor) for name, factor in load_file(file).items()}, file, {'format': 'pt'})
`;
  runPython(script, o.folder, String(seed));
}

/** As a worker asks policy servers. */
export const policyClient = (o: { url: string; store: ArtifactStore; concurrency?: number }): PolicyClient =>
  createPolicyClient({ concurrency: 8, ...o, merge: createMerger({ store: o.store, python }) });

const runPython = (script: string, ...args: string[]): unknown =>
  execFileSync(python, ['-c', script, ...args], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });

/** The shipped model's shape and words, with weights that mean nothing: it solves no task. */
export function makeRandomModel(folder: string): void {
  cpSync(join(root, 'models', 'base'), folder, { recursive: true });
  const script = `
import sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.manual_seed(1)
AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(sys.argv[1])).save_pretrained(sys.argv[1])
`;
  runPython(script, folder);
}

/** Makes a random model by a helper of the Python tests, and adapters for it. */
function makeModel(maker: string, folder: string, adapters: string[], targets: string[]): void {
  const script = `
import sys; sys.path.insert(0, "trainer/tests")
from pathlib import Path
from conftest import save_adapter, ${maker}
model = ${maker}(Path(sys.argv[1]))
for seed, path in enumerate(sys.argv[2:]):
    save_adapter(Path(path), model, seed, ${JSON.stringify(targets)}, rank=8, spread=0.05)
`;
  runPython(script, folder, ...adapters);
}

/** Spoken to as Qwen3 is. */
export const makeHermesModel = (folder: string, adapters: string[] = []): void =>
  makeModel('save_hermes_model', folder, adapters, ['q_proj', 'v_proj']);

/** In the shipped text format. */
export const makeTinyModel = ({ folder, adapters = [] }: { folder: string; adapters?: string[] }): void =>
  makeModel('save_tiny_model', folder, adapters, ['q_proj', 'v_proj', 'w1', 'w2']);
