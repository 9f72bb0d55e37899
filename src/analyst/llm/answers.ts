/**
 * What answers of the model are held against. Invariants: a defect names the place, the value and what would be right, in words for the model
 * that mends it; every step that is cited was shown; nothing is filled in, so an answer with a defect is not used at all.
 */
import { z } from 'zod';
import { capabilityNameSchema, type FailureOrigin, failureOriginSchema, type Label } from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { jsonIn, type Read } from '../../language-model/answer';
import type { Shown } from './requests';

/** Defects that one answer is sent back with: more say nothing new. */
const MOST_DEFECTS = 30;
export const LONGEST_DEFINITION = 800;

const bounded = (defects: readonly string[]): string[] =>
  defects.length <= MOST_DEFECTS
    ? [...defects]
    : [
        ...defects.slice(0, MOST_DEFECTS),
        `and ${defects.length - MOST_DEFECTS} more of this kind: check the whole answer`,
      ];

const checked = <Value>(value: Value, defects: readonly string[]): Read<Value> =>
  defects.length > 0 ? { defects: bounded(defects) } : { value };

function parsed<Schema extends z.ZodType>(text: string, schema: Schema): Read<z.infer<Schema>> {
  const json = jsonIn(text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = schema.safeParse(json.value);
  if (!error) return { value: data };
  return { defects: bounded(error.issues.map(({ path, message }) => `${path.join('.') || 'the answer'}: ${message}`)) };
}

/** What a definition must not repeat: the trajectories as they were shown, and the tools' names. */
export interface ShownText {
  trajectories: string;
  tools: readonly string[];
}

interface Limits {
  shownText: ShownText;
  maxCandidates: number;
}

const text = (empty: string) => z.string().trim().min(1, empty);
const sentence = text('it is empty; say it in a sentence');
const steps = z.array(z.object({ rollout: z.string(), message: z.number().int(), says: sentence }));
const discoverySchema = z.object({
  capabilities: z.array(z.object({ name: z.string(), definition: sentence, lacking: steps, shown: steps })),
  faults: z.array(z.object({ of: z.enum(['environment', 'user']), what: sentence, steps: steps.min(1) })),
});
type DiscoveryAnswer = z.infer<typeof discoverySchema>;
export type Proposal = DiscoveryAnswer['capabilities'][number];
/** With the trajectory by the id that the model knows. */
export type Step = Proposal['lacking'][number];

export function readDiscovery(o: Limits & { text: string; shown: Shown }): Read<DiscoveryAnswer> {
  const { shown } = o;
  const answer = parsed(o.text, discoverySchema);
  if ('defects' in answer) return answer;
  const { capabilities, faults } = answer.value;
  const anyPassed = [...shown.values()].some(isSuccess);
  return checked(answer.value, [
    ...capabilityDefects(capabilities, o),
    ...capabilities.flatMap((capability, n) => [
      ...citedDefects(capability.lacking, { at: `capabilities.${n}.lacking`, passed: false, wanted: true, shown }),
      ...citedDefects(capability.shown, { at: `capabilities.${n}.shown`, passed: true, wanted: anyPassed, shown }),
    ]),
    ...faults.flatMap((fault, n) =>
      fault.steps.flatMap((step, m) => {
        const defect = stepDefect(step, shown);
        return defect === undefined ? [] : [`faults.${n}.steps.${m}: ${defect}`];
      }),
    ),
  ]);
}

const mergeSchema = z.object({
  capabilities: z
    .array(
      z.object({
        name: z.string(),
        definition: text('it is empty; say it in 2 or 3 sentences'),
        merges: z.array(z.number().int()).min(1, 'it is empty; give the numbers of the proposals that it stands for'),
      }),
    )
    .min(1, 'it is empty; keep at least one'),
});

/** `proposals` are numbered from 1 in the request. */
export function readMerged(o: Limits & { text: string; proposals: readonly Proposal[] }): Read<Proposal[]> {
  const { proposals } = o;
  const answer = parsed(o.text, mergeSchema);
  if ('defects' in answer) return answer;
  const { capabilities } = answer.value;
  const taken = new Set<number>();
  const mergeDefects = capabilities.flatMap(({ merges }, n) =>
    merges.flatMap((number) => {
      const at = `capabilities.${n}.merges`;
      if (!proposals[number - 1])
        return [`${at} names proposal ${number}; the proposals are numbered 1 to ${proposals.length}`];
      if (taken.has(number)) return [`${at} names proposal ${number} a second time; each goes into one entry`];
      taken.add(number);
      return [];
    }),
  );
  const merged = capabilities.map(({ name, definition, merges }) => {
    const own = merges.flatMap((number) => proposals[number - 1] ?? []);
    const [lacking, shown] = [own.flatMap((one) => one.lacking), own.flatMap((one) => one.shown)];
    return { name, definition, lacking, shown };
  });
  return checked(merged, [...capabilityDefects(capabilities, o), ...mergeDefects]);
}

function capabilityDefects(
  capabilities: readonly { name: string; definition: string }[],
  { maxCandidates, shownText }: Limits,
): string[] {
  const names = capabilities.map(({ name }) => name);
  return [
    ...(names.length > maxCandidates
      ? [`capabilities has ${names.length} entries; at most ${maxCandidates} are wanted: merge or drop`]
      : []),
    ...capabilities.flatMap(({ name, definition }, n) => [
      ...nameDefects(name, { at: `capabilities.${n}.name`, first: names.indexOf(name), n }),
      ...definitionDefects(definition, `capabilities.${n}.definition`, shownText),
    ]),
  ];
}

function nameDefects(name: string, { at, first, n }: { at: string; first: number; n: number }): string[] {
  if (first < n)
    return [`${at} is "${name}", as that of entry ${first}; each skill is named once: merge the two, or rename one`];
  const { error } = capabilityNameSchema.safeParse(name);
  return error ? [`${at} is "${name}": ${error.issues[0]?.message} of letters a-z`] : [];
}

function definitionDefects(definition: string, at: string, { trajectories, tools }: ShownText): string[] {
  const words: string[] = definition.match(/[\p{L}\p{N}_@#$.+-]*[\p{L}\p{N}_]/gu) ?? [];
  // An address, anything with three digits, or what mixes letters and digits and stands in a trajectory.
  const value = words.find(
    (word) =>
      /\w@\w/.test(word) ||
      (word.match(/\d/g) ?? []).length >= 3 ||
      (/\d/.test(word) && /\p{L}/u.test(word) && trajectories.includes(word)),
  );
  const tool = tools.find((name) => /[_A-Z]/.test(name.slice(1)) && words.includes(name));
  return [
    ...(definition.length > LONGEST_DEFINITION
      ? [`${at} has ${definition.length} characters; at most ${LONGEST_DEFINITION}, in 2 or 3 sentences`]
      : []),
    ...(value === undefined ? [] : [`${at} holds "${value}", a value of a task; say the skill without any`]),
    ...(tool === undefined
      ? []
      : [`${at} names the tool ${tool}; say the skill so that it holds where tools have other names`]),
  ];
}

/** Of steps that are to be of one outcome; `wanted`: at least one. */
function citedDefects(
  steps: readonly Step[],
  { at, passed, wanted, shown }: { at: string; passed: boolean; wanted: boolean; shown: Shown },
): string[] {
  const outcome = passed ? 'PASSED' : 'FAILED';
  if (steps.length === 0 && wanted) return [`${at} is empty; cite at least one step of a trajectory that ${outcome}`];
  return steps.flatMap((step, n) => {
    const defect = stepDefect(step, shown);
    if (defect !== undefined) return [`${at}.${n}: ${defect}`];
    const rollout = shown.get(step.rollout);
    if (rollout && isSuccess(rollout) !== passed)
      return [`${at}.${n}: ${step.rollout} is no trajectory that ${outcome}; cite one that did, or leave the step out`];
    return [];
  });
}

/** Why a step can't be cited: only a message that was shown of a trajectory that was shown can. */
function stepDefect({ rollout: id, message }: Pick<Step, 'rollout' | 'message'>, shown: Shown): string | undefined {
  const rollout = shown.get(id);
  if (!rollout) return `there is no trajectory "${id}" here; the ids are ${[...shown.keys()].join(', ')}`;
  const role = rollout.messages[message]?.role;
  if (role !== undefined && role !== 'system') return undefined;
  const numbers = rollout.messages.flatMap((one, n) => (one.role === 'system' ? [] : [n]));
  const known = numbers.length === 0 ? 'none' : `${numbers[0]} to ${numbers.at(-1)}`;
  return role === undefined
    ? `${id} has no message ${message}; its messages are ${known}`
    : `${id}.${message} is the policy, which is no part of the trajectory; its messages are ${known}`;
}

/** Of one trajectory; where a failure is not the agent's there are no labels. */
export interface Labeled {
  /** Of a failed one, always. */
  failure?: FailureOrigin | undefined;
  labels: Map<string, { label: Label; reason: string; message?: number | undefined }>;
}

const record = z.record(z.string(), z.unknown());
const reasonSchema = z.string().trim().min(1);
const labelNames: readonly unknown[] = ['NA', 'PRESENT', 'LACKING'] satisfies Label[];

/** By the ids that the model knows. */
export function readLabels(o: { text: string; shown: Shown; names: readonly string[] }): Read<Map<string, Labeled>> {
  const json = jsonIn(o.text);
  if ('defect' in json) return { defects: [json.defect] };
  const answer = record.safeParse(json.value).data;
  if (!answer) return { defects: ['the answer is no JSON object; give one with a field for each trajectory'] };
  const wanted = [...o.shown.keys()];
  const missing = wanted.filter((id) => !Object.hasOwn(answer, id));
  const unknown = Object.keys(answer).filter((id) => !o.shown.has(id));
  const reader = new LabelReader(o.shown, o.names);
  if (missing.length > 0)
    reader.defects.push(
      `these trajectories are not labeled: ${missing.join(', ')}; label each of ${wanted.join(', ')}`,
    );
  for (const id of unknown)
    reader.defects.push(`"${id}" is none of the trajectories to label, which are ${wanted.join(', ')}`);
  const labeled = new Map<string, Labeled>();
  for (const [id, rollout] of o.shown)
    if (Object.hasOwn(answer, id)) labeled.set(id, reader.trajectory(id, rollout, answer[id]));
  return checked(labeled, reader.defects);
}

/** Whatever is missing or wrong goes to `defects`; what it returns beside one is never used. */
class LabelReader {
  readonly defects: string[] = [];

  constructor(
    private readonly shown: Shown,
    private readonly names: readonly string[],
  ) {}

  trajectory(id: string, rollout: ScoredRollout, given: unknown): Labeled {
    const fields = record.safeParse(given).data ?? {};
    const labels = record.safeParse(fields['labels']).data;
    if (!labels) {
      this.defects.push(`${id}.labels is no object; write "${id}": {"failure": ..., "labels": {...}}`);
      return { labels: new Map() };
    }
    const failure = this.failure(id, rollout, fields['failure']);
    if (!failure || failure.of === 'agent') return { failure, labels: this.labels(id, labels) };
    this.requireNoLabels(id, labels);
    return { failure, labels: new Map() };
  }

  private failure(id: string, rollout: ScoredRollout, given: unknown): FailureOrigin | undefined {
    const at = `${id}.failure`;
    if (isSuccess(rollout)) {
      if (given !== null && given !== undefined)
        this.defects.push(`${at}: ${id} PASSED, so there is no failure; write null and label it`);
      return undefined;
    }
    const fields = record.safeParse(given).data;
    if (!fields) {
      this.defects.push(
        `${at} is ${JSON.stringify(given) ?? 'missing'}, but ${id} FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}`,
      );
      return undefined;
    }
    const of = failureOriginSchema.shape.of.safeParse(fields['of']).data;
    if (of === undefined)
      this.defects.push(
        `${at}.of is ${JSON.stringify(fields['of']) ?? 'missing'}; write "agent", "environment" or "user"`,
      );
    const message = this.message(id, fields['message'] ?? null, at);
    const reason = reasonSchema.safeParse(fields['reason']).data;
    if (reason === undefined) this.defects.push(`${at} has no reason; say in one line why the failure begins there`);
    return { of: of ?? 'agent', message: message ?? 0, reason: reason ?? '' };
  }

  /** NA is what a trajectory counts as that says nothing of the agent. */
  private requireNoLabels(id: string, labels: Record<string, unknown>): void {
    const labeled = Object.entries(labels).find(([, given]) => [given].flat()[0] !== 'NA');
    if (labeled)
      this.defects.push(
        `${id} labels ${labeled[0]} beside a failure that is not the agent's, which says nothing of the agent: write "labels": {}, or a failure of "agent"`,
      );
  }

  private labels(id: string, given: Record<string, unknown>): Labeled['labels'] {
    const missing = this.names.filter((name) => !Object.hasOwn(given, name));
    if (missing.length > 0)
      this.defects.push(`${id}.labels lacks ${missing.join(', ')}; label every capability, NA where it does not arise`);
    for (const name of Object.keys(given))
      if (!this.names.includes(name))
        this.defects.push(`${id}.labels has "${name}", which is none of the capabilities ${this.names.join(', ')}`);
    const labels: Labeled['labels'] = new Map();
    for (const name of this.names) {
      const label = Object.hasOwn(given, name) ? this.label(id, name, given[name]) : undefined;
      if (label) labels.set(name, label);
    }
    return labels;
  }

  /** `["LACKING", 7, "reason"]`; the message may be left out for NA. */
  private label(id: string, name: string, value: unknown): ReturnType<Labeled['labels']['get']> {
    const at = `${id}.labels.${name}`;
    const given: unknown[] = Array.isArray(value) ? value : [];
    const [label, place, reason] = given.length === 2 && given[0] === 'NA' ? ['NA', null, given[1]] : given;
    if (!labelNames.includes(label)) {
      this.defects.push(
        `${at} is ${JSON.stringify(value)}; write [label, message, "reason"] with the label NA, PRESENT or LACKING`,
      );
      return undefined;
    }
    const why = reasonSchema.safeParse(reason).data;
    if (why === undefined) {
      this.defects.push(`${at} has no reason; write [${JSON.stringify(label)}, message, "what is to be seen there"]`);
      return undefined;
    }
    if (label === 'NA' && place === null) return { label, reason: why };
    return { label: label as Label, reason: why, message: this.message(id, place, at) };
  }

  /** The number of a message; it may be written as in the trajectory, `r1.7`. */
  private message(id: string, place: unknown, at: string): number | undefined {
    const message = typeof place === 'string' ? Number(place.replace(`${id}.`, '') || NaN) : place;
    const isNumber = typeof message === 'number' && Number.isInteger(message);
    const defect = isNumber ? stepDefect({ rollout: id, message }, this.shown) : undefined;
    if (!isNumber)
      this.defects.push(`${at} hangs on the message ${JSON.stringify(place)}; give the number of a message of ${id}`);
    else if (defect !== undefined) this.defects.push(`${at}: ${defect}`);
    return isNumber ? message : undefined;
  }
}
