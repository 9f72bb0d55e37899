/**
 * One labeling pass over all scored rollouts. Invariants: all passes ask the same, byte for byte, and differ by their seed alone; an answer
 * labels exactly the trajectories and capabilities that were asked for, each with a reason, and every failed trajectory has a beginning at a
 * message that was shown; nothing is filled in, so a pass is whole or it fails.
 */
import { z } from 'zod';
import { seedOf } from '../../artifacts/hash';
import {
  type Candidate,
  type FailureOrigin,
  failureOriginSchema,
  type Label,
  type LabelPass,
} from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { compact, shortIds } from '../../domain/transcript';
import { answerOf, jsonIn, type Read } from '../../language-model/answer';
import { type LabelInput, passFrom } from '../analyst';
import { bounded, messageIn } from './checks';
import { askAll, byShortId, type Config, contrastChunks, partsAtTasks, readable, roomIn, targetText } from './requests';

export async function label(config: Config, input: LabelInput): Promise<LabelPass> {
  const { rollouts, description, candidates, pass, ledger } = input;
  const names = candidates.map(({ name }) => name);
  const ids = shortIds(rollouts);
  const common = { description, candidates, ids };
  const chunks = labelChunks(config, { ...common, rollouts });
  const seed = seedOf(`llm labels ${input.seed} ${pass}`);
  const labeled = await askAll({
    items: names.length > 0 ? chunks : [],
    step: 'labels',
    ledger,
    work: input,
    ask: (chunk, asking) => {
      const shown = byShortId(chunk, ids);
      return answerOf({
        ...config,
        messages: labelPrompt(config, { ...common, rollouts: shown }),
        seed,
        read: (text) => readLabels({ text, rollouts: shown, names }),
        asking,
      });
    },
  });
  const byId = new Map(labeled.flatMap((one) => [...one]));
  return passOf({ pass, names, rollouts: [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1)), ids, byId });
}

interface LabelCommon extends Pick<LabelInput, 'description'> {
  candidates: readonly Pick<Candidate, 'name' | 'definition'>[];
  ids: ReadonlyMap<string, string>;
}
const valuesOf = ({ description, candidates }: LabelCommon) => ({
  ...targetText(description),
  capabilities: candidates.map(({ name, definition }) => `- ${name}: ${definition}`).join('\n'),
});

/** What a request says besides its trajectories. */
export const emptyLabelValues = (o: LabelCommon) => ({ ...valuesOf(o), trajectories: '', ids: '' });

/** What the requests show. */
export function labelChunks(
  config: Config,
  o: LabelCommon & { rollouts: readonly ScoredRollout[] },
): ScoredRollout[][] {
  const room = roomIn(config, 'label', emptyLabelValues(o));
  const chunks = contrastChunks({ ...config, rollouts: o.rollouts, ids: o.ids, tokens: config.chunkTokens, room });
  return chunks.flatMap((chunk) => partsAtTasks(chunk, config.labelsPerChunk));
}

export function labelPrompt(config: Config, o: LabelCommon & { rollouts: ReadonlyMap<string, ScoredRollout> }) {
  const trajectories = compact({ rollouts: [...o.rollouts.values()], ids: o.ids, lengths: config.lengths });
  return config.prompts.render('label', { ...valuesOf(o), trajectories, ids: [...o.rollouts.keys()].join(', ') });
}

function passOf(o: {
  pass: number;
  names: readonly string[];
  rollouts: readonly ScoredRollout[];
  ids: ReadonlyMap<string, string>;
  byId: ReadonlyMap<string, Labeled>;
}): LabelPass {
  const known = byShortId(o.rollouts, o.ids);
  const labeled = [...known].map(([id, rollout]) => ({
    key: rollout.key,
    given: o.byId.get(id),
    forPeople: (reason: string) => readable(reason, known, id),
  }));
  // What is not the agent's says nothing of any capability.
  const labelIn = (name: string, given?: Labeled) =>
    given && !isAgents(given) ? 'NA' : given?.labels.get(name)?.label;
  const labelOf = ({ key }: ScoredRollout, name: string) => labelIn(name, o.byId.get(o.ids.get(key) ?? key));
  return {
    ...passFrom({ attempt: o.pass, rollouts: o.rollouts, names: o.names, labelOf }),
    reasons: Object.fromEntries(
      o.names.map((name) => {
        const reasons = labeled.flatMap(({ key, given, forPeople }) => {
          const own = given?.labels.get(name);
          if (!own) return [];
          const { reason, message } = own;
          return [[key, { reason: forPeople(reason), ...(message !== undefined && { message }) }] as const];
        });
        return [name, Object.fromEntries(reasons)];
      }),
    ),
    failures: Object.fromEntries(
      labeled.flatMap(({ key, given, forPeople }) =>
        given?.failure ? [[key, { ...given.failure, reason: forPeople(given.failure.reason) }] as const] : [],
      ),
    ),
  };
}

interface GivenLabel {
  label: Label;
  reason: string;
  message?: number;
}
/** Of one trajectory; where a failure is not the agent's there are no labels. */
export interface Labeled {
  /** Of a failed one, always. */
  failure?: FailureOrigin;
  labels: Map<string, GivenLabel>;
}

/** Whether the trajectory says anything of the agent. */
const isAgents = ({ failure }: Pick<Labeled, 'failure'>): boolean => !failure || failure.of === 'agent';

interface LabelRequest {
  /** What was shown, by the ids that the model knows. */
  rollouts: ReadonlyMap<string, ScoredRollout>;
  names: readonly string[];
}

const recordSchema = z.record(z.string(), z.unknown());
const words = new Set<unknown>(['NA', 'PRESENT', 'LACKING'] satisfies Label[]);

/** By the ids that the model knows. */
export function readLabels({ text, ...request }: LabelRequest & { text: string }): Read<Map<string, Labeled>> {
  const json = jsonIn(text);
  if ('defect' in json) return { defects: [json.defect] };
  const answer = recordSchema.safeParse(json.value).data;
  if (!answer) return { defects: ['the answer is no JSON object; give one with a field for each trajectory'] };
  const wanted = [...request.rollouts.keys()];
  const missing = wanted.filter((id) => !Object.hasOwn(answer, id));
  const unknown = Object.keys(answer).filter((id) => !request.rollouts.has(id));
  const read = wanted
    .filter((id) => Object.hasOwn(answer, id))
    .map((id) => [id, readOne(id, answer[id], request)] as const);
  const defects = [
    ...(missing.length > 0
      ? [`these trajectories are not labeled: ${missing.join(', ')}; label each of ${wanted.join(', ')}`]
      : []),
    ...unknown.map((id) => `"${id}" is none of the trajectories to label, which are ${wanted.join(', ')}`),
    ...read.flatMap(([, one]) => ('defects' in one ? one.defects : [])),
  ];
  if (defects.length > 0) return { defects: bounded(defects) };
  return { value: new Map(read.flatMap(([id, one]) => ('value' in one ? [[id, one.value] as const] : []))) };
}

function readOne(id: string, value: unknown, { rollouts, names }: LabelRequest): Read<Labeled> {
  const fields = recordSchema.safeParse(value).data ?? {};
  const labels = recordSchema.safeParse(fields['labels']).data;
  if (!labels) return { defects: [`${id}.labels is no object; write "${id}": {"failure": ..., "labels": {...}}`] };
  const failed = readFailure({ id, given: fields['failure'], rollouts });
  const read = failed.blamesOther ? withoutLabels(id, labels) : readAll({ id, labels, rollouts, names });
  const defects = [failed, read].flatMap((one) => ('defects' in one ? one.defects : []));
  if ('defects' in failed || 'defects' in read) return { defects };
  return { value: { ...(failed.value && { failure: failed.value }), labels: read.value } };
}

/** NA is what it counts as. */
function withoutLabels(id: string, labels: Record<string, unknown>): Read<Labeled['labels']> {
  const labeled = Object.entries(labels).find(
    ([, given]) => (Array.isArray(given) ? (given as unknown[])[0] : given) !== 'NA',
  );
  if (!labeled) return { value: new Map() };
  return {
    defects: [
      `${id} labels ${labeled[0]} beside a failure that is not the agent's, which says nothing of the agent: write "labels": {}, or a failure of "agent"`,
    ],
  };
}

function readAll(o: {
  id: string;
  labels: Record<string, unknown>;
  rollouts: LabelRequest['rollouts'];
  names: readonly string[];
}): Read<Labeled['labels']> {
  const { id, labels, rollouts, names } = o;
  const missing = names.filter((name) => !Object.hasOwn(labels, name));
  const unknown = Object.keys(labels).filter((name) => !names.includes(name));
  const read = names
    .filter((name) => Object.hasOwn(labels, name))
    .map((name) => [name, readLabel({ id, name, given: labels[name], rollouts })] as const);
  const defects = [
    ...(missing.length > 0
      ? [`${id}.labels lacks ${missing.join(', ')}; label every capability, NA where it does not arise`]
      : []),
    ...unknown.map((name) => `${id}.labels has "${name}", which is none of the capabilities ${names.join(', ')}`),
    ...read.flatMap(([, one]) => ('defects' in one ? one.defects : [])),
  ];
  if (defects.length > 0) return { defects };
  return { value: new Map(read.flatMap(([name, one]) => ('value' in one ? [[name, one.value] as const] : []))) };
}

/** `["LACKING", 7, "reason"]`; the message may be left out for NA. */
function readLabel(o: {
  id: string;
  name: string;
  given: unknown;
  rollouts: LabelRequest['rollouts'];
}): Read<GivenLabel> {
  const { id, rollouts } = o;
  const at = `${id}.labels.${o.name}`;
  const given: unknown[] = Array.isArray(o.given) ? o.given : [];
  const [label, place, reason] = given.length === 2 && given[0] === 'NA' ? ['NA', null, given[1]] : given;
  if (!words.has(label))
    return {
      defects: [
        `${at} is ${JSON.stringify(o.given)}; write [label, message, "reason"] with the label NA, PRESENT or LACKING`,
      ],
    };
  if (typeof reason !== 'string' || reason.trim() === '')
    return { defects: [`${at} has no reason; write [${JSON.stringify(label)}, message, "what is to be seen there"]`] };
  if (label === 'NA' && place === null) return { value: { label: 'NA', reason: reason.trim() } };
  const message = messageIn({ rollout: id, place, at, rollouts });
  if ('defects' in message) return message;
  return { value: { label: label as Label, reason: reason.trim(), message: message.value } };
}

/** `blamesOther`: it is put down to the environment or the user, whatever else is wrong with it. */
type ReadFailure = Read<FailureOrigin | undefined> & { blamesOther: boolean };

const given = z.record(z.string(), z.unknown());
const { of: culprit } = failureOriginSchema.shape;

function readFailure(o: { id: string; given: unknown; rollouts: ReadonlyMap<string, ScoredRollout> }): ReadFailure {
  const { id, rollouts } = o;
  const at = `${id}.failure`;
  const rollout = rollouts.get(id);
  if (rollout && isSuccess(rollout)) {
    if (o.given === null || o.given === undefined) return { value: undefined, blamesOther: false };
    return { defects: [`${at}: ${id} PASSED, so there is no failure; write null and label it`], blamesOther: false };
  }
  const fields = given.safeParse(o.given).data;
  if (!fields)
    return {
      defects: [
        `${at} is ${JSON.stringify(o.given) ?? 'missing'}, but ${id} FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}`,
      ],
      blamesOther: false,
    };
  const of = culprit.safeParse(fields['of']).data;
  const message = messageIn({ rollout: id, place: fields['message'] ?? null, at, rollouts });
  const reason = z.string().trim().min(1).safeParse(fields['reason']).data;
  const blamesOther = of !== undefined && of !== 'agent';
  if (of !== undefined && 'value' in message && reason !== undefined)
    return { value: { of, message: message.value, reason }, blamesOther };
  return {
    defects: [
      ...(of === undefined
        ? [`${at}.of is ${JSON.stringify(fields['of']) ?? 'missing'}; write "agent", "environment" or "user"`]
        : []),
      ...('defects' in message ? message.defects : []),
      ...(reason === undefined ? [`${at} has no reason; say in one line why the failure begins there`] : []),
    ],
    blamesOther,
  };
}
