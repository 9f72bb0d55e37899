/** Approvals by a person: an update decides, a query shows what waits. A campaign asks about its capabilities, a capability about its environment. */
import {
  CancellationScope,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { answerSchema, decisionText, type Answer, type Decision, type Waiting } from '../domain/approval';
import type { Campaign } from '../domain/campaign';
import { firstIssue } from '../domain/issues';
import { type ApprovalRequest, queryNames, searchAttributes, updateNames } from './messages';
import { control } from './steps';

const decideUpdate = defineUpdate<Decision, [Answer]>(updateNames.decide);
const askedQuery = defineQuery<ApprovalRequest | null>(queryNames.approval);

type Subject = Omit<ApprovalRequest, 'waiting'> & { waiting: Omit<Waiting, 'since'> };

export class Approvals {
  private asked: ApprovalRequest | undefined;
  private readonly decided = new Map<string, Decision>();

  constructor(
    private readonly progress: { waiting?: Waiting },
    private readonly show: () => void,
  ) {
    setHandler(askedQuery, () => this.asked ?? null, {
      description: 'What waits for approval; null if nothing does',
    });
    setHandler(decideUpdate, (input) => this.take(answerSchema.parse(input)), {
      validator: (input) => this.check(input),
      description: 'Approves or rejects what waits for approval',
    });
  }

  /** Returns the earlier decision about the same subject, or waits until a person decides. */
  async ask(campaign: Campaign, subject: Subject): Promise<Decision> {
    const { of } = subject.waiting;
    const about = { about: workflowInfo().workflowId, of };
    const earlier = await control(campaign, 'look for an earlier decision').recallDecision(about);
    const decision = earlier ?? (await this.wait(subject));
    this.decided.set(of, decision);
    const keep = () => control(campaign, 'keep the decision').keepDecision({ ...about, decision });
    // Stored even if the campaign is cancelled now: the person has seen the decision accepted, so the next run must find it.
    if (!earlier) await CancellationScope.nonCancellable(keep);
    return decision;
  }

  private async wait(subject: Subject): Promise<Decision> {
    const waiting = { ...subject.waiting, since: Date.now() };
    this.asked = { ...subject, waiting };
    this.progress.waiting = waiting;
    upsertSearchAttributes([{ key: searchAttributes.attention, value: 'approval' }]);
    this.show();
    try {
      await condition(() => this.decided.has(waiting.of));
    } finally {
      this.asked = undefined;
      delete this.progress.waiting;
      upsertSearchAttributes([{ key: searchAttributes.attention, value: null }]);
      this.show();
    }
    return this.decided.get(waiting.of)!;
  }

  private take(answer: Answer): Decision {
    const decision: Decision = { ...answer, at: Date.now() };
    this.decided.set(this.asked!.waiting.of, decision);
    return decision;
  }

  /** Throws if the answer decides nothing; the sender of the update sees the message. */
  private check(input: unknown): void {
    const waiting = this.asked?.waiting;
    const last = [...this.decided.values()].at(-1);
    if (!waiting || this.decided.has(waiting.of))
      throw new Error(
        last
          ? `already decided: ${decisionText(last)}; nothing else waits for approval here`
          : 'nothing waits for approval here',
      );
    const parsed = answerSchema.safeParse(input);
    if (!parsed.success) throw new Error(firstIssue(parsed.error, input));
    const { of } = parsed.data;
    const earlier = of === undefined ? undefined : this.decided.get(of);
    if (earlier) throw new Error(`already decided: ${decisionText(earlier)}; what waits now came after it`);
    if (of !== undefined && of !== waiting.of)
      throw new Error('another version waits for approval now: look at it first');
    checkNames(parsed.data, waiting);
  }
}

function checkNames(answer: Answer, { what, names }: Waiting): void {
  if (answer.kind === 'approve' || !answer.names) return;
  if (what === 'environment') throw new Error('names: an environment waits for approval, no capabilities');
  const unknown = answer.names.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new Error(`unknown capability ${unknown.join(', ')}; those that wait for approval: ${names.join(', ')}`);
}
