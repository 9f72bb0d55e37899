/** `--edit FILE`: a list of capabilities, or the text of a module. Invariant: what is wrong with it is said before anything is decided. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { sha256 } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import { editedCapabilitiesSchema, type Approval } from '../../domain/approval';
import { messageOf, UserError } from '../errors';
import type { AskedOf } from './asked';

export async function readEdit(o: {
  file: string;
  asked: AskedOf;
  store: ArtifactStore;
}): Promise<Pick<Approval, 'capabilities' | 'module'>> {
  const { file, asked, store } = o;
  const text = contents(file);
  if (!asked.environment) return { capabilities: capabilitiesIn(text, file) };
  const { candidate, rounds } = asked.environment;
  if (text.trim() === '') throw new UserError(`${file} is empty; it is to hold the environment of ${candidate.name}`);
  const module = await store.put({
    key: `edited-module/${sha256(text)}`,
    producer: 'campaign approve --edit',
    inputs: rounds.slice(-1).map((round) => round.module),
    mediaType: 'text/javascript',
    body: text,
  });
  return { module };
}

function contents(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UserError(`--edit: cannot read ${file} (${messageOf(error)})`);
  }
}

function capabilitiesIn(text: string, file: string): NonNullable<Approval['capabilities']> {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new UserError(`${file} is not YAML: ${messageOf(error)}`);
  }
  const parsed = editedCapabilitiesSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.map(String).join('.') ?? '';
  throw new UserError(
    `${file}: ${[at, issue?.message].filter(Boolean).join(': ')}; it is a list of capabilities, each {name, definition}: those to go on with`,
  );
}
