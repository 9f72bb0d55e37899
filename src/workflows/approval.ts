/**
 * Approvals by a person. An update decides, and its validator refuses one that decides nothing; a query shows what waits. A campaign asks about the
 * selected capabilities, a capability about its environment. Each subject is decided once. The decision is stored, so that a campaign that is
 * started again does not ask again.
 */
import {
  ApplicationFailure,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import {
  answerSchema,
  decisionText,
  type Answer,
  type Approval,
  type Decision,
  type Waiting,
} from '../domain/approval';
import type { ArtifactRef } from '../domain/artifacts';
import type { SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { FailureType } from '../domain/failures';
import type { SelectedCapability, SelectionResult } from '../domain/results';
import { type ApprovalRequest, queryNames, updateNames } from './messages';
import { required, type Run } from './run';
import type { ChildStatus } from './status';
import { control } from './steps';

const decideUpdate = defineUpdate<Decision, [Answer]>(updateNames.decide);
const askedQuery = defineQuery<ApprovalRequest | null>(queryNames.approval);

const hours = (count: number): number => count * 3600 * 1000;

/** A subject of approval. `refuse` returns why an answer does not fit it. */
export interface Subject {
  asked: ApprovalRequest & { waiting: Omit<Waiting, 'since' | 'reminded' | 'until'> };
  refuse(answer: Answer): string | undefined;
}

export class Approvals {
  private subject: Subject | undefined;
  private readonly decided = new Map<string, Decision>();

  /** Calls `onChange` with the subject that waits, and with undefined once it is decided. */
  constructor(private readonly onChange: (waiting: Waiting | undefined) => void) {
    setHandler(askedQuery, () => this.subject?.asked ?? null, {
      description: 'What waits for approval; null if nothing does',
    });
    setHandler(decideUpdate, (input) => this.take(answerSchema.parse(input)), {
      validator: (input) => this.check(input),
      description: 'Approves or rejects what waits for approval',
    });
  }

  /** Waits until a person decides or `approval.timeoutHours` is over. Throws NotApproved if the timeout fails the workflow. */
  async ask(o: { campaign: Campaign; subject: Subject }): Promise<Decision> {
    const { campaign, subject } = o;
    const { of } = subject.asked.waiting;
    const about = { about: workflowInfo().workflowId, of };
    const kept = await control(campaign, 'look for an earlier decision').recallDecision(about);
    if (kept) {
      this.decided.set(of, kept);
      return kept;
    }
    const decision = await this.wait({ campaign, subject });
    // A rejection by timeout is not stored: the next start asks again.
    if (decision.by === 'person' || decision.kind === 'approve')
      await control(campaign, 'keep the decision').keepDecision({ ...about, decision });
    return decision;
  }

  private async wait({ campaign, subject }: { campaign: Campaign; subject: Subject }): Promise<Decision> {
    const { remindHours, timeoutHours } = campaign.approval;
    const since = Date.now();
    const until = timeoutHours === undefined ? {} : { until: since + hours(timeoutHours) };
    const show = (reminded: boolean) => {
      const waiting = { ...subject.asked.waiting, since, reminded, ...until };
      this.subject = { ...subject, asked: { ...subject.asked, waiting } };
      this.onChange(waiting);
    };
    const { of } = subject.asked.waiting;
    const answered = () => this.decided.has(of);
    const first = Math.min(remindHours, timeoutHours ?? remindHours);
    show(false);
    try {
      if (!(await condition(answered, hours(first)))) {
        if (first < (timeoutHours ?? Infinity)) {
          show(true);
          if (timeoutHours === undefined) await condition(answered);
          else await condition(answered, hours(timeoutHours - first));
        }
        if (!answered()) this.decided.set(of, timedOut(campaign, subject));
      }
    } finally {
      this.subject = undefined;
      this.onChange(undefined);
    }
    return this.decided.get(of)!;
  }

  private take(answer: Answer): Decision {
    const decision: Decision = { ...answer, by: 'person', at: Date.now() };
    this.decided.set(this.subject!.asked.waiting.of, decision);
    return decision;
  }

  /** Throws an Error, whose message the sender of the update sees, to refuse it. */
  private check(input: unknown): void {
    const waiting = this.subject?.asked.waiting;
    const last = [...this.decided.values()].at(-1);
    if (!waiting || this.decided.has(waiting.of))
      throw new Error(
        last
          ? `already decided: ${decisionText(last)}; nothing else waits for approval here`
          : 'nothing waits for approval here',
      );
    const parsed = answerSchema.safeParse(input);
    if (!parsed.success) throw new Error(malformed(parsed.error.issues));
    const { of } = parsed.data;
    const earlier = of === undefined ? undefined : this.decided.get(of);
    if (earlier) throw new Error(`already decided: ${decisionText(earlier)}; what waits now came after it`);
    if (of !== undefined && of !== waiting.of)
      throw new Error('another version waits for approval now: look at it first');
    const problem = this.subject?.refuse(parsed.data);
    if (problem !== undefined) throw new Error(problem);
  }
}

const malformed = (issues: readonly { path: PropertyKey[]; message: string }[]): string =>
  issues.map(({ path, message }) => [path.map(String).join('.'), message].filter(Boolean).join(': ')).join('; ');

function timedOut({ approval }: Campaign, { asked: { waiting } }: Subject): Decision {
  const { timeoutHours, onTimeout } = approval;
  const reason = `it was not approved within ${timeoutHours} h (approval.timeoutHours)`;
  const by = { by: 'timeout', at: Date.now() } as const;
  if (onTimeout === 'approve') return { kind: 'approve', ...by };
  if (onTimeout === 'reject') return { kind: 'reject', reason, ...by };
  const what = waiting.what === 'capabilities' ? waiting.names.join(', ') : `the environment of ${waiting.names[0]}`;
  throw ApplicationFailure.nonRetryable(
    `${what}: ${reason}; the same command asks again`,
    'NotApproved' satisfies FailureType,
  );
}

/** Returns the selection as a person decided it, or unchanged if the campaign does not ask. */
export async function approvedSelection(run: Run, selection: SelectionResult): Promise<SelectionResult> {
  const { config, status, found } = run;
  const { selected } = selection;
  if (!config.approval.capabilities || selected.length === 0) return selection;
  const names = selected.map(({ candidate }) => candidate.name);
  const waiting = { what: 'capabilities', of: selection.selection.sha256, names } as const;
  const rollouts = required(found.baseRollouts).ref;
  const decision = await status.approvals.ask({
    campaign: config,
    subject: { asked: { waiting, capabilities: { rollouts, selection } }, refuse: capabilitiesRefusal(names) },
  });
  if (decision.kind === 'approve') return { ...selection, decision, selected: edited(selected, decision.capabilities) };
  const rejected = decision.names ?? names;
  return { ...selection, decision, selected: selected.filter(({ candidate }) => !rejected.includes(candidate.name)) };
}

function edited(selected: readonly SelectedCapability[], list: Approval['capabilities']): SelectedCapability[] {
  if (!list) return [...selected];
  return selected.flatMap(({ candidate, votes }) => {
    const definition = list.find(({ name }) => name === candidate.name)?.definition;
    return definition === undefined ? [] : [{ candidate: { ...candidate, definition }, votes }];
  });
}

const capabilitiesRefusal =
  (waiting: readonly string[]): Subject['refuse'] =>
  (answer) => {
    if (answer.kind === 'approve' && answer.module) return 'module: capabilities wait for approval, no environment';
    const named = namesIn(answer);
    const unknown = named.filter((name) => !waiting.includes(name));
    if (unknown.length > 0)
      return `unknown capability ${unknown.join(', ')}; those that wait for approval: ${waiting.join(', ')}`;
    const twice = named.find((name, n) => named.indexOf(name) !== n);
    return twice === undefined ? undefined : `${twice} is named twice; name each capability once`;
  };

const namesIn = (answer: Answer): string[] =>
  answer.kind === 'reject' ? (answer.names ?? []) : (answer.capabilities ?? []).map(({ name }) => name);

/** `take` trains on the version, `give up` ends synthesis, and an object continues with the edited module or else the synthesizer's next one. */
export type Verdict = 'take' | 'give up' | { edited?: ArtifactRef | undefined };

/** Asks about the module of the last round, and records the decision in that round. */
export async function environmentVerdict(o: {
  campaign: Campaign;
  candidate: Candidate;
  rounds: readonly SynthesisRound[];
  status: ChildStatus;
}): Promise<Verdict> {
  const { campaign, candidate, rounds, status } = o;
  const last = rounds.at(-1);
  if (!last || !campaign.approval.environments) return 'take';
  const { round, module } = last;
  status.set('approval', `round ${round} of ${campaign.calibration.maxRounds}`, round);
  const waiting = { what: 'environment' as const, of: module.sha256, names: [candidate.name], round };
  const decision = await status.approvals.ask({
    campaign,
    subject: {
      asked: { waiting, environment: { candidate, rounds: [...rounds] } },
      refuse: environmentRefusal(module),
    },
  });
  last.decision = decision;
  // A timeout gives the synthesizer no reason that it could work on.
  if (decision.kind === 'reject') return decision.by === 'timeout' ? 'give up' : {};
  return decision.module ? { edited: decision.module } : 'take';
}

/** Returns the rejection as the report shows it; undefined if the round was not rejected. */
export function rejectionText({ decision }: SynthesisRound): string | undefined {
  if (decision?.kind !== 'reject') return undefined;
  const { by, reason } = decision;
  return by === 'person' ? `a person read this version and rejected it: ${reason}` : reason;
}

const environmentRefusal =
  ({ sha256 }: ArtifactRef): Subject['refuse'] =>
  (answer) => {
    if (answer.kind === 'reject') return answer.names && 'names: an environment waits for approval, no capabilities';
    const { capabilities, module } = answer;
    if (capabilities) return 'capabilities: an environment waits for approval, no capabilities';
    return module?.sha256 === sha256
      ? 'module: it is the text that waits for approval; approve it without an edit'
      : undefined;
  };
