/**
 * Reads and checks answers of the model. A defect names the place, the value and the fix, worded for the model that repairs the answer. Every cited
 * step must have been shown. Nothing is filled in: an answer with a defect is not used at all.
 */
import { z } from 'zod';
import { capabilityNameSchema, type FailureOrigin, failureOriginSchema, type Label } from '../../domain/capability';
import { plainLine } from '../../domain/plain-text';
import { isSuccess } from '../../domain/rollout';
import { MOST_DEFECTS, type Read, readJsonAnswer } from '../../llm/answer';
import type { Shown } from './chunks';

const LONGEST_DEFINITION = 800;

const checked = <Value>(value: Value, defects: readonly string[]): Read<Value> =>
  defects.length === 0 ? { value } : { defects: defects.slice(0, MOST_DEFECTS) };

/** `shownText`: definitions must not repeat values of the shown trajectories, or names of tools. */
interface Limits {
  shownText: { trajectories: string; tools: readonly string[] };
  maxCandidates: number;
}

/** A text of the model that later prompts, pages and terminals show as one line. */
const sentence = (fix: string) =>
  z
    .string()
    .trim()
    .min(1, `it is empty; ${fix}`)
    .transform((text) => plainLine(text.replace(/\s+/g, ' ')));
const says = sentence('say it in a sentence');
const steps = z.array(z.object({ rollout: z.string(), message: z.number().int(), says }));
const discoverySchema = z.object({
  capabilities: z.array(z.object({ name: z.string(), definition: says, lacking: steps, shown: steps })),
  faults: z.array(z.object({ of: z.enum(['environment', 'user']), what: says, steps: steps.min(1) })),
});
type DiscoveryAnswer = z.infer<typeof discoverySchema>;
export type Proposal = DiscoveryAnswer['capabilities'][number];
/** A cited message; the trajectory is named by the id that the model was shown. */
export type Step = Proposal['lacking'][number];

export function readDiscovery(o: Limits & { text: string; shown: Shown }): Read<DiscoveryAnswer> {
  const answer = readJsonAnswer(o.text, discoverySchema);
  if ('defects' in answer) return answer;
  const { capabilities, faults } = answer.value;
  const anyPassed = [...o.shown.values()].some(isSuccess);
  return checked(answer.value, [
    ...capabilityDefects(capabilities, o),
    ...capabilities.flatMap(({ lacking, shown }, n) => [
      ...citedDefects(`capabilities.${n}.lacking`, lacking, { passed: false, wanted: true, among: o.shown }),
      ...citedDefects(`capabilities.${n}.shown`, shown, { passed: true, wanted: anyPassed, among: o.shown }),
    ]),
    ...faults.flatMap(({ steps }, n) =>
      steps.flatMap((step, m) => at(`faults.${n}.steps.${m}`, stepDefect(step.rollout, step.message, o.shown))),
    ),
  ]);
}

const at = (place: string, defect: string | undefined): string[] =>
  defect === undefined ? [] : [`${place}: ${defect}`];

const mergeSchema = z.object({
  capabilities: z
    .array(
      z.object({
        name: z.string(),
        definition: sentence('say it in 2 or 3 sentences'),
        merges: z.array(z.number().int()).min(1, 'it is empty; give the numbers of the proposals that it stands for'),
      }),
    )
    .min(1, 'it is empty; keep at least one'),
});

/** `proposals` are numbered from 1 in the request. */
export function readMerged(o: Limits & { text: string; proposals: readonly Proposal[] }): Read<Proposal[]> {
  const { proposals } = o;
  const answer = readJsonAnswer(o.text, mergeSchema);
  if ('defects' in answer) return answer;
  const { capabilities } = answer.value;
  const taken = new Set<number>();
  const mergeDefects = capabilities.flatMap(({ merges }, n) =>
    merges.flatMap((number) => {
      const names = `capabilities.${n}.merges names proposal ${number}`;
      if (!proposals[number - 1]) return [`${names}; the proposals are numbered 1 to ${proposals.length}`];
      if (taken.has(number)) return [`${names} a second time; each goes into one entry`];
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
  capabilities: readonly Pick<Proposal, 'name' | 'definition'>[],
  { maxCandidates, shownText }: Limits,
): string[] {
  const names = capabilities.map(({ name }) => name);
  const tooMany = `capabilities has ${names.length} entries; at most ${maxCandidates} are wanted: merge or drop`;
  return [
    ...(names.length > maxCandidates ? [tooMany] : []),
    ...capabilities.flatMap(({ name, definition }, n) => [
      ...nameDefects(`capabilities.${n}.name is "${name}"`, name, names.slice(0, n)),
      ...definitionDefects(definition, shownText).map((defect) => `capabilities.${n}.definition ${defect}`),
    ]),
  ];
}

function nameDefects(is: string, name: string, before: readonly string[]): string[] {
  const first = before.indexOf(name);
  if (first >= 0) return [`${is}, as that of entry ${first}; each skill is named once: merge the two, or rename one`];
  const { error } = capabilityNameSchema.safeParse(name);
  return error ? [`${is}: ${error.issues[0]?.message} of letters a-z`] : [];
}

function definitionDefects(definition: string, { trajectories, tools }: Limits['shownText']): string[] {
  const words: string[] = definition.match(/[\p{L}\p{N}_@#$.+-]*[\p{L}\p{N}_]/gu) ?? [];
  // An address, a word with three digits, or a word of letters and digits that occurs in a trajectory.
  const value = words.find(
    (word) =>
      /\w@\w/.test(word) ||
      (word.match(/\d/g) ?? []).length >= 3 ||
      (/\d/.test(word) && /\p{L}/u.test(word) && trajectories.includes(word)),
  );
  const tool = tools.find((name) => /[_A-Z]/.test(name.slice(1)) && words.includes(name));
  const { length } = definition;
  return [
    length > LONGEST_DEFINITION && `has ${length} characters; at most ${LONGEST_DEFINITION}, in 2 or 3 sentences`,
    value !== undefined && `holds "${value}", a value of a task; say the skill without any`,
    tool !== undefined && `names the tool ${tool}; say the skill so that it holds where tools have other names`,
  ].filter((defect) => defect !== false);
}

/** Returns defects of cited steps that must come from trajectories of one outcome. `wanted`: at least one step is required. */
function citedDefects(
  place: string,
  steps: readonly Step[],
  { passed, wanted, among }: { passed: boolean; wanted: boolean; among: Shown },
): string[] {
  const outcome = passed ? 'PASSED' : 'FAILED';
  if (steps.length === 0 && wanted)
    return [`${place} is empty; cite at least one step of a trajectory that ${outcome}`];
  return steps.flatMap(({ rollout: id, message }, n) => {
    const rollout = among.get(id);
    const other = `${id} is no trajectory that ${outcome}; cite one that did, or leave the step out`;
    const isOther = rollout && isSuccess(rollout) !== passed;
    return at(`${place}.${n}`, stepDefect(id, message, among) ?? (isOther ? other : undefined));
  });
}

/** Why a step can't be cited: only a message that was shown of a trajectory that was shown can. */
function stepDefect(id: string, message: number, shown: Shown): string | undefined {
  const rollout = shown.get(id);
  if (!rollout) return `there is no trajectory "${id}" here; the ids are ${[...shown.keys()].join(', ')}`;
  const numbers = rollout.messages.flatMap((one, n) => (one.role === 'system' ? [] : [n]));
  if (numbers.includes(message)) return undefined;
  const known = numbers.length === 0 ? 'none' : `${numbers[0]} to ${numbers.at(-1)}`;
  return `${id} has no message ${message} that can be cited; its messages are ${known}`;
}

/** The labels of one trajectory, by capability; absent if its failure is not the agent's. */
export interface Labeled {
  /** Present if the trajectory failed. */
  failure?: FailureOrigin;
  labels: Map<string, { label: Label; why: { reason: string; message?: number } }>;
}

/** The keys are the ids that the model knows. */
export function readLabels(o: { text: string; shown: Shown; names: readonly string[] }): Read<Map<string, Labeled>> {
  const { text, shown, names } = o;
  const trajectories = [...shown.keys()].map((id) => [id, trajectorySchema(id, shown, names)] as const);
  const form = 'give one object with a field for each trajectory, and no other';
  const answer = readJsonAnswer(text, z.strictObject(Object.fromEntries(trajectories), form));
  return 'defects' in answer ? answer : { value: new Map(Object.entries(answer.value)) };
}

const FORM = 'write {"failure": ..., "labels": {...}}';
/** The number of a message; it may be written as in the trajectory, `r1.7`. */
const place = z.union([z.int(), z.string()], 'give the number of a message');
const seen = sentence('say what is to be seen there');
const labelSchema = z.union(
  [
    z.tuple([z.literal('NA'), seen]).transform(([label, reason]) => [label, null, reason] as const),
    z.tuple([z.literal('NA'), z.null(), seen]),
    z.tuple([z.enum(['NA', 'PRESENT', 'LACKING']), place, seen]),
  ],
  'write ["PRESENT" or "LACKING", the number of a message, "what is to be seen there"], or ["NA", null, "why"]',
);

function trajectorySchema(id: string, shown: Shown, names: readonly string[]): z.ZodType<Labeled> {
  const messageOf = (written: number | string, context: z.RefinementCtx): number => {
    const message = typeof written === 'string' ? Number(written.replace(`${id}.`, '') || NaN) : written;
    const notOne = `it is ${JSON.stringify(written)}; give the number of a message of ${id}`;
    const defect = Number.isInteger(message) ? stepDefect(id, message, shown) : notOne;
    if (defect !== undefined) context.addIssue(defect);
    return message;
  };
  const label = labelSchema.transform(([label, written, reason], context) => ({
    label,
    why: { reason, ...(written !== null && { message: messageOf(written, context) }) },
  }));
  const labels = z.strictObject(Object.fromEntries(names.map((name) => [name, label])), FORM);
  if (isSuccess(shown.get(id)!)) {
    const none = z.null(`${id} PASSED, so there is no failure; write null and label it`).optional();
    return z
      .object({ failure: none, labels }, FORM)
      .transform((one) => ({ labels: new Map(Object.entries(one.labels)) }));
  }
  const failure = z.object(
    {
      of: z.enum(failureOriginSchema.shape.of.options, 'write "agent", "environment" or "user"'),
      message: place.transform(messageOf),
      reason: sentence('say in one line why the failure begins there'),
    },
    'it FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}',
  );
  const written = z.record(z.string(), z.unknown(), FORM);
  return z.object({ failure, labels: written }, FORM).transform(({ failure, labels: given }, context) => {
    if (failure.of === 'agent') {
      const { data = {}, error } = labels.safeParse(given);
      for (const { path, message } of error?.issues ?? [])
        context.addIssue({ code: 'custom', path: ['labels', ...path], message });
      return { failure, labels: new Map(Object.entries(data)) };
    }
    const message = `the failure is not the agent's, which says nothing of the agent: write {}, or a failure of "agent"`;
    // NA is the default, so these labels change nothing.
    if (Object.values(given).some((one) => [one].flat()[0] !== 'NA'))
      context.addIssue({ code: 'custom', path: ['labels'], message });
    return { failure, labels: new Map() };
  });
}
