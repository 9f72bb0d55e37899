/** Damage as a disk does it: a byte flipped, or the end of a file gone. */
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { CAMPAIGN } from './faults-checks';
import { artifacts, filesBelow, namesIn, objectFile, provenanceFile, trainingsOf, type StoredKey } from './faults-home';
import type { Random } from './faults-random';
import type { Session } from './faults-session';

export const ways = ['flipped', 'cut'] as const;
export type Way = (typeof ways)[number];

/** Keeps the file's mode: objects are read-only. */
export function damage({ file, way, random }: { file: string; way: Way; random: Random }): void {
  const { size, mode } = statSync(file);
  if (size === 0) throw new Error(`${file} is empty: nothing to damage`);
  chmodSync(file, 0o644);
  const position = Math.floor(random.next() * size);
  if (way === 'cut') truncateSync(file, position);
  else {
    const open = openSync(file, 'r+');
    const byte = Buffer.alloc(1);
    readSync(open, byte, 0, 1, position);
    writeSync(open, Buffer.from([(byte[0] ?? 0) ^ 0x20]), 0, 1, position);
    closeSync(open);
  }
  chmodSync(file, mode);
}

/** Something that a home holds, and where. */
type Place = (session: Session) => string | undefined;

/** The first artifact that was made under such a key. */
const madeFirst = ({ keys }: Session, pattern: RegExp): StoredKey | undefined =>
  keys.matching(pattern).sort((a, b) => statSync(a.file).mtimeMs - statSync(b.file).mtimeMs)[0];

const object =
  (pattern: RegExp): Place =>
  (session) => {
    const found = madeFirst(session, pattern);
    return found && objectFile(session.home, found.ref.sha256);
  };

const inTraining =
  (find: (training: string) => string | undefined): Place =>
  ({ home, random }) => {
    const files = trainingsOf(home)
      .flatMap((training) => find(training) ?? [])
      .filter((file) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0);
    return files.length > 0 ? random.pick(files) : undefined;
  };

/** Returns the optimizer file of the newest checkpoint. */
function checkpointFile(training: string): string | undefined {
  const steps = namesIn(training).flatMap((name) => /^checkpoint-(\d+)$/.exec(name)?.[1] ?? []);
  const last = Math.max(...steps.map(Number));
  return steps.length > 0 ? join(training, `checkpoint-${last}`, 'optimizer.pt') : undefined;
}

const BATCH = /^rollouts\/[0-9a-f]{64}$/;
const ADAPTER = /^adapter\//;

export const places = {
  batch: object(BATCH),
  labels: object(/^labels?\//),
  candidates: object(/^candidates\//),
  'key entry': (session) => madeFirst(session, /^selection\//)?.file,
  provenance: (session) => {
    const batch = madeFirst(session, BATCH);
    return batch && provenanceFile(session.home, batch.ref.sha256);
  },
  module: object(/^environment\//),
  calibration: object(/^calibration\//),
  'adapter listing': object(ADAPTER),
  'adapter file': (session) => {
    const adapters = session.keys.matching(ADAPTER);
    if (adapters.length === 0) return undefined;
    const listing = readFileSync(objectFile(session.home, session.random.pick(adapters).ref.sha256), 'utf8');
    const { files } = JSON.parse(listing) as { files: { sha256: string }[] };
    return objectFile(session.home, session.random.pick(files).sha256);
  },
  'materialised folder': ({ home, random }) => {
    const files = filesBelow(artifacts(home, 'folders')).filter((file) => file.endsWith('.safetensors'));
    return files.length > 0 ? random.pick(files) : undefined;
  },
  'training result': object(/^training\/[0-9a-f]+$/),
  'training metrics': object(/^training\/[0-9a-f]+\/metrics\//),
  router: object(/^router\//),
  'training marker': ({ home, random }) => {
    const files = filesBelow(artifacts(home, 'trainings')).filter((file) => file.includes('/markers/'));
    return files.length > 0 ? random.pick(files) : undefined;
  },
  checkpoint: inTraining(checkpointFile),
  'metrics.jsonl': inTraining((training) => join(training, 'metrics.jsonl')),
  'batch.jsonl': inTraining((training) => join(training, 'batch.jsonl')),
  'run.json': ({ home }) => home.state,
  'status.json': ({ home }) => join(home.root, CAMPAIGN, 'status.json'),
  'report.json': ({ home }) => join(home.root, CAMPAIGN, 'report.json'),
} satisfies Record<string, Place>;
export type PlaceName = keyof typeof places;

/** Damages each of them; what is not there is a violation, for then nothing was tried. */
export function damageAll(session: Session, names: readonly PlaceName[], way: Way): string[] {
  // All are found before the first is damaged: some lie behind others.
  const found = names.map((name) => ({ name, file: places[name](session) }));
  return found.flatMap(({ name, file }) => {
    if (file === undefined || !existsSync(file)) return [`there is no ${name} to damage`];
    damage({ file, way, random: session.random });
    return [];
  });
}
