/** Approval of the selected capabilities. Invariant: what goes on was selected; a person leaves out and words anew, and adds nothing. */
import type { Approval, Rejection } from '../domain/approval';
import type { SelectedCapability, SelectionResult } from '../domain/results';
import type { Subject } from './approval';
import { required, type Run } from './run';

/** The selection with what was decided of it; as it is where nobody is asked. */
export async function approvedSelection(run: Run, selection: SelectionResult): Promise<SelectionResult> {
  const { config, status, found } = run;
  const { selected } = selection;
  if (!config.approval.capabilities || selected.length === 0) return selection;
  const names = selected.map(({ candidate }) => candidate.name);
  const waiting = { what: 'capabilities', of: selection.selection.sha256, names } as const;
  const rollouts = required(found.baseRollouts).ref;
  const decision = await status.approvals.ask({
    campaign: config,
    gate: status.gate,
    subject: { asked: { waiting, capabilities: { rollouts, selection } }, refuse: refusal(names) },
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

const refusal =
  (waiting: readonly string[]): Subject['refuse'] =>
  (answer) => {
    if ('approve' in answer && answer.approve.module) return 'module: capabilities wait for approval, no environment';
    const named = namesIn(answer);
    const unknown = named.filter((name) => !waiting.includes(name));
    if (unknown.length > 0)
      return `unknown capability ${unknown.join(', ')}; those that wait for approval: ${waiting.join(', ')}`;
    const twice = named.find((name, n) => named.indexOf(name) !== n);
    return twice === undefined ? undefined : `${twice} is named twice; name each capability once`;
  };

const namesIn = (answer: { approve: Approval } | { reject: Rejection }): string[] =>
  'reject' in answer ? (answer.reject.names ?? []) : (answer.approve.capabilities ?? []).map(({ name }) => name);
