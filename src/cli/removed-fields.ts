/** Campaign file fields of 0.2 that are refused, each with its replacement. The table is dropped in 0.5. */
import { dotted, type FieldProblem } from './input';

const hints = 'an environment that is too hard is revised';
const pace = 'lower concurrency; the endpoint says when to ask again';
const prompts = 'edit prompts/*.md of the installation';
const waiting = 'a campaign waits until a person decides; the search attribute CampaignAttention says which ones wait';

/** The replacement or the reason, by path with `[]` for any entry of a list, or by path and value for a value that alone is refused. */
const removed: Record<string, string> = {
  'target.rewardFile': 'write grader: [cat, FILE]',
  'target.maxProcesses': "limit the processes of the worker's container instead (docs/machines.md)",
  'target.kind=harbor': 'use kind verifiers instead (docs/agents.md)',
  'target.kind=openenv': 'use kind verifiers instead (docs/agents.md)',
  'target.kind=builtin':
    'use target.kind shop of the plug-in examples/shop, or a target of your own (docs/environments.md)',
  'calibration.hintShare': hints,
  'calibration.maxConstant': 'set minInformative to 1 minus its value',
  'training.hintShare': hints,
  'training.stepsAhead': "a step's rollouts are of the policy after the last update",
  'approval.remindHours': waiting,
  'approval.timeoutHours': waiting,
  'approval.onTimeout': waiting,
  'router.embeddings': 'similar tasks are found by their words',
  'analyst.prompts': prompts,
  'synthesizer.prompts': prompts,
  'analyst.requestsPerMinute': pace,
  'synthesizer.requestsPerMinute': pace,
  'arms[].reflection.requestsPerMinute': pace,
  'workers.shardBase': 'a base model that does not fit on one GPU needs a Tinker server (docs/gpu.md)',
  metrics: 'a trainer reports its own curves: set training.reportTo (docs/report.md)',
  'router.kind=moe_gate': 'vLLM cannot serve it; delete the line',
  composites: 'the baseline `kind: environments` of arms trains one adapter on all environments',
  'arms[].candidateSelection': 'a search takes the next prompt from the Pareto front',
  'arms[].merges': 'a search merges no prompts',
  'arms[].kind=joint': 'write kind: environments, name: joint',
  'arms[].kind=grpo_single': 'write kind: environments, name: grpo_single, from: { capability: NAME }',
  'arms[].modules': 'write from: { folder: PATH }',
  'arms[].kind=sft': 'no baseline learns from conversations; delete the entry',
};

/** One problem per removed field, or value of a field, in what a file says. */
export function findRemoved(fields: unknown, path: PropertyKey[] = []): FieldProblem[] {
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields).flatMap(([key, value]: [string, unknown]) => {
    const here = [...path, Array.isArray(fields) ? Number(key) : key];
    const name = dotted(here, () => '[]');
    const problem = { code: 'removed_field', path: here, field: dotted(here) } as const;
    const [field, ofValue] = [removed[name], removed[`${name}=${String(value)}`]];
    return [
      ...(field ? [{ ...problem, reason: 'was removed in 0.3', fix: `${field}; delete the line` }] : []),
      ...(ofValue
        ? [{ ...problem, value: String(value), reason: `${String(value)} was removed in 0.3`, fix: ofValue }]
        : []),
      ...findRemoved(value, here),
    ];
  });
}
