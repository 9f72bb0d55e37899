/**
 * tau2-bench without models: the real bridge and engine, an agent and a user that follow a plan. The user says the task's id first, so
 * both know which plan; what each does next depends on how often it has spoken.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import type { Environment } from '../../src/domain/environment';
import type { AssistantMessage, Message, UserMessage } from '../../src/domain/messages';
import type { Rollout } from '../../src/domain/rollout';
import { type Tau2Domain, tau2Program } from '../../src/environments/benchmarks';
import { openProcessEnvironment } from '../../src/environments/process';
import type { Judge, SimulatedUser } from '../../src/llm/partners';
import type { PolicyClient } from '../../src/policy/client';
import { OutsideFailure } from '../../src/domain/failures';
import { scriptedPolicy, turnOf } from './scripted-policy';
import { scriptedRollouts } from './scripted-rollouts';

export type Domain = Tau2Domain;

/** The messages of both sides, in order; the agent begins after the user's first message. */
export interface Plan {
  agent: (AssistantMessage | 'context is full')[];
  user: UserMessage[];
}
export type Plans = (task: string) => Plan;

/** A clone of tau2-bench, in place of the package. */
export const checkout = process.env.TAU2_CHECKOUT;

export interface Options {
  domains: Domain[];
  /** A judge's verdict on a task's assertion. */
  isMet?: (assertion: string) => boolean;
  processes?: number;
  silenceMs?: number;
}

export const root = resolve(__dirname, '..', '..');
export const python = resolve(root, '.venv-bridges/bin/python');
export const STOP = '###STOP###';

/** The real bridge with a user that follows the plans. */
export function openTau2(plans: Plans, { domains, processes = 1, isMet = () => true, ...more }: Options): Environment {
  let beginning = '';
  const user: SimulatedUser = {
    id: 'scripted',
    async speak({ messages }) {
      const own = messages.filter(({ role }) => role === 'assistant');
      const [first] = own;
      if (!first) return { role: 'user', content: `task ${beginning}` };
      return plans(taskOf(first)).user[own.length - 1] ?? { role: 'user', content: STOP };
    },
  };
  const judge = judgeOf(domains, isMet);
  const inner = openProcessEnvironment({ ...tau2Program({ domains, checkout }), processes, user, judge, ...more });
  let before: Promise<unknown> = Promise.resolve();
  return {
    ...inner,
    /** One after the other: the user speaks within it, and must know the task. */
    reset(task, signal) {
      const begun = before.then(() => {
        beginning = task.id;
        return inner.reset(task, signal);
      });
      before = begun.catch(() => undefined);
      return begun;
    },
  };
}

/** Judgements by question. */
const judgements = new Map<string, string>();

/** Judges by the assertion alone; the user has said in the conversation which task it is about. */
function judgeOf(domains: Domain[], isMet: (assertion: string) => boolean): Judge {
  let reference: Record<string, { assertions: string[] }> | undefined;
  return {
    id: 'scripted',
    async answer(question) {
      const { content } = question.at(-1)!;
      const task = /^\s*user: task (\S+)$/m.exec(content)![1]!;
      reference ??= JSON.parse(run('bridges.tests.reference', domains)) as typeof reference;
      const results = reference![task]!.assertions.map((assertion) => {
        return { expectedOutcome: assertion, reasoning: '', metExpectation: isMet(assertion) };
      });
      judgements.set(content, JSON.stringify({ results }));
      return judgements.get(content)!;
    },
  };
}

/** A judge that is hard to please, and always of the same opinion. */
export const halfMet = (assertion: string): boolean => createHash('sha256').update(assertion).digest()[0]! % 2 === 0;

const agentOf = (plans: Plans): PolicyClient =>
  scriptedPolicy(({ messages }) => {
    const plan = plans(taskOf(messages.find(({ role }) => role === 'user')!));
    const next = plan.agent[turnOf(messages) - 1] ?? { role: 'assistant', content: 'anything else?' };
    if (next === 'context is full') throw new OutsideFailure('ContextLengthExceeded', next);
    return next;
  });

const taskOf = ({ content }: Message): string => content.replace(/^task /, '');

/** One rollout of each task, made by the engine. */
export async function rollouts({
  tasks,
  plans,
  environment,
  maxSteps,
  ...options
}: Options & { tasks: string[]; plans: Plans; environment?: Environment; maxSteps?: number }): Promise<Rollout[]> {
  const bridge = environment ?? openTau2(plans, options);
  try {
    return await scriptedRollouts({ environment: bridge, client: agentOf(plans), tasks, maxSteps });
  } finally {
    if (!environment) await bridge.close();
  }
}

/** Scores rollouts with tau2-bench's own evaluator, in a process without the bridge. */
export function officially(recorded: Rollout[]): { reward: number; breakdown: Record<string, number> }[] {
  const lines = recorded.map((rollout) => `${JSON.stringify({ ...rollout, rows: [] })}\n`).join('');
  return JSON.parse(run('bridges.tests.official', [], `${JSON.stringify(Object.fromEntries(judgements))}\n${lines}`));
}

/** A module of the bridges' tests. */
export const run = (module: string, args: string[], input = ''): string =>
  execFileSync(python, ['-m', module, ...args], { cwd: root, input, maxBuffer: 1 << 28 }).toString();
