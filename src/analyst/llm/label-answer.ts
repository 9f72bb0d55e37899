/**
 * The answer to a request for labels. Invariant: it labels exactly the trajectories and capabilities that were asked for, and every label has
 * its reason; nothing is filled in.
 */
import { z } from 'zod';
import type { FailureOrigin, Label } from '../../domain/capability';
import type { ScoredRollout } from '../../domain/rollout';
import type { Read } from '../../language-model/answer';
import { jsonIn } from '../../language-model/json';
import { bounded, messageIn } from './checks';
import { readFailure } from './failure-answer';

export interface GivenLabel {
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
export const isAgents = ({ failure }: Pick<Labeled, 'failure'>): boolean => !failure || failure.of === 'agent';

interface Asked {
  /** What was shown, by the ids that the model knows. */
  rollouts: ReadonlyMap<string, ScoredRollout>;
  names: readonly string[];
}

const recordSchema = z.record(z.string(), z.unknown());
const words = new Set<unknown>(['NA', 'PRESENT', 'LACKING'] satisfies Label[]);

/** By the ids that the model knows. */
export function readLabels({ text, ...asked }: Asked & { text: string }): Read<Map<string, Labeled>> {
  const json = jsonIn(text);
  if ('defect' in json) return { defects: [json.defect] };
  const answer = recordSchema.safeParse(json.value).data;
  if (!answer) return { defects: ['the answer is no JSON object; give one with a field for each trajectory'] };
  const wanted = [...asked.rollouts.keys()];
  const missing = wanted.filter((id) => !Object.hasOwn(answer, id));
  const unknown = Object.keys(answer).filter((id) => !asked.rollouts.has(id));
  const read = wanted
    .filter((id) => Object.hasOwn(answer, id))
    .map((id) => [id, readOne(id, answer[id], asked)] as const);
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

function readOne(id: string, value: unknown, { rollouts, names }: Asked): Read<Labeled> {
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
  rollouts: Asked['rollouts'];
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
function readLabel(o: { id: string; name: string; given: unknown; rollouts: Asked['rollouts'] }): Read<GivenLabel> {
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
