/** `campaign init`: writes the campaign file of an agent program, and the program with its tasks and grader where there is none. */
import { cp, readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parse } from 'csv-parse/sync';
import { Document, isCollection } from 'yaml';
import { z } from 'zod';
import { splitSchema } from '../domain/environment';
import { jsonText } from '../domain/messages';
import { projectRoot } from '../store/project-root';
import { print } from '../terminal';
import { InputError, messageOf } from './errors';
import type { CommonOptions } from './options';
import { writeInto } from './project';

interface InitOptions extends CommonOptions {
  agent?: string;
  tasks?: string;
  baseModel?: string;
  url?: string;
  model?: string;
}

const FILE = 'campaign.yaml';
/** Share of the rows that become train tasks if no row names its split. */
const TRAIN_SHARE = 2 / 3;
/** A program with policy, tasks and grader, as a start for one's own. */
const EXAMPLE = join(projectRoot, 'examples/triage');
const EXAMPLE_FILES = ['agent.py', 'policy.md', 'grade.py', 'tasks.jsonl'];

const rowSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).transform(String).optional(),
  split: splitSchema.optional(),
});
type Row = z.infer<typeof rowSchema>;

/** Returns the rows of a table: CSV with a line of names, or JSON lines. */
function parseRows(file: string, text: string): unknown[] {
  if (file.endsWith('.csv')) return parse(text, { columns: true, skip_empty_lines: true, bom: true, trim: true });
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => jsonText.parse(line));
}

/** Reads tasks and gives each an id and a split. Throws InputError if the file cannot be read, or has too few rows for two splits. */
async function readTaskRows(file: string): Promise<(Row & { id: string; split: string })[]> {
  const bad = (reason: string, fix: string) =>
    new InputError({ code: 'invalid_argument', field: '--tasks', value: file, reason: `is ${file}: ${reason}`, fix });
  let rows: Row[];
  try {
    rows = z.array(rowSchema).parse(parseRows(file, await readFile(file, 'utf8')));
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error).replace(/\s*\n\s*/g, ' ') : messageOf(error);
    throw bad(reason, 'name a file of JSON lines, or a CSV file whose first line has the names of its columns');
  }
  if (rows.length < 2) throw bad(`${rows.length} tasks`, 'give at least one train task and one test task');
  const hasSplits = rows.some(({ split }) => split !== undefined);
  const trainRows = Math.min(rows.length - 1, Math.ceil(rows.length * TRAIN_SHARE));
  return rows.map((row, n) => ({
    ...row,
    id: row.id ?? String(n + 1),
    split: row.split ?? (hasSplits || n < trainRows ? 'train' : 'test'),
  }));
}

/** Splits a command into words; quotes hold a word together. */
const splitCommand = (command: string): string[] =>
  [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? '');

/** Returns the value of `baseModel`: a folder, else a model of the Hugging Face hub. */
const baseModelOf = (named: string, folder: string): object =>
  existsSync(named) ? { path: relative(folder, resolve(named)) || '.' } : { hub: named };

/** Questions for missing options, in order: option, question, default. */
const QUESTIONS = [
  ['agent', 'Command that starts your agent for one task, empty for an example', ''],
  ['tasks', 'File of its tasks, JSON lines or CSV', 'tasks.jsonl'],
  ['baseModel', 'Base model, a folder or a name on the hub', 'Qwen/Qwen2.5-0.5B-Instruct'],
  ['url', 'Language model that writes environments, address of its API', 'http://127.0.0.1:8001/v1'],
  ['model', "That model's name", 'some-model'],
] as const;
type Answers = Record<(typeof QUESTIONS)[number][0], string>;

/** Asks for what no option gives. Without a terminal, or with --yes, every answer is its default. */
async function askMissing(options: InitOptions): Promise<Answers> {
  const isAsking = !options.yes && process.stdin.isTTY && process.stderr.isTTY;
  const lines = isAsking ? createInterface({ input: process.stdin, output: process.stderr }) : undefined;
  const answers: Partial<Answers> = {};
  try {
    for (const [name, question, otherwise] of QUESTIONS) {
      if (name === 'tasks' && answers.agent === '') continue;
      const text = `${question}${otherwise && ` (${otherwise})`}: `;
      answers[name] = options[name] ?? ((await lines?.question(text)) || otherwise);
    }
    return answers as Answers;
  } finally {
    lines?.close();
  }
}

export async function init(folder = '.', options: InitOptions): Promise<void> {
  const file = join(folder, FILE);
  if (existsSync(file))
    throw new InputError({
      ...{ code: 'invalid_argument', field: 'dir', value: folder, reason: `is ${folder}, which has a ${FILE}` },
      fix: 'name another folder, or edit that file',
    });
  const { agent, tasks, baseModel, url, model } = await askMissing(options);
  const rows = agent ? await readTaskRows(tasks) : undefined;
  const lines = rows?.map((row) => `${JSON.stringify(row)}\n`).join('');
  // The program's files are relative to the folder in which `init` was called.
  const place = agent ? { folder: relative(folder, '.') || '.' } : {};
  const languageModel = { kind: 'llm', url, model };
  const campaign = {
    name:
      basename(resolve(folder))
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '') || 'campaign',
    target: agent
      ? { kind: 'agent', command: splitCommand(agent), ...place, tasks: 'tasks.jsonl' }
      : { kind: 'agent', command: ['python3', 'agent.py'], tasks: 'tasks.jsonl', grader: ['python3', 'grade.py'] },
    preset: 'small-model',
    baseModel: baseModelOf(baseModel, folder),
    analyst: languageModel,
    synthesizer: languageModel,
  };
  const document = new Document(campaign, { aliasDuplicateObjects: false });
  for (const path of [['target', 'command'], ['target', 'grader'], ['baseModel'], ['analyst'], ['synthesizer']]) {
    const node = document.getIn(path);
    if (isCollection(node)) node.flow = true;
  }
  const text = `${HEAD}${document.toString({ lineWidth: 0 })}${TAIL}`;
  await writeInto(folder, { [FILE]: text, ...(lines !== undefined && { 'tasks.jsonl': lines }) });
  if (!agent)
    for (const name of EXAMPLE_FILES)
      await cp(join(EXAMPLE, name), join(folder, name), { errorOnExist: true, force: false });
  print(
    `${file} is written${agent ? '' : `, with an example agent (${EXAMPLE_FILES.join(', ')}); it needs \`pip install openai\``}`,
  );
  print(`Next: campaign check ${file} --target`);
}

const HEAD = '# All fields: docs/campaign-file.md; `campaign check FILE` says what is missing.\n';
const TAIL = `# The language model is needed after the base rollouts only. Its key is in the variable that apiKeyEnv names:
#   analyst: { kind: llm, url: ..., model: ..., apiKeyEnv: MY_KEY }
# The preset is for a small model on two CPU cores. With a GPU, leave it out, serve the base model with vLLM (docs/gpu.md) and name it:
#   policyServer: { kind: vllm, url: 'http://127.0.0.1:8000' }
`;
