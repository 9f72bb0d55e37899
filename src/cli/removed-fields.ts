/** Campaign file fields of 0.2 that are refused, each with its replacement. The table is dropped in 0.5. */

export interface RemovedField {
  /** Path as in error messages, with `[]` for any entry of a list. */
  path: string;
  /** The only refused value of the field. Without it every value is refused. */
  value?: string;
  version: '0.3';
  /** The replacement or the reason; follows the path in the error. Of a `value` it says what to write or delete. */
  why: string;
}

export const removed: readonly RemovedField[] = [
  { path: 'target.rewardFile', version: '0.3', why: 'write grader: [cat, FILE]' },
  {
    path: 'target.maxProcesses',
    version: '0.3',
    why: "limit the processes of the worker's container instead (docs/machines.md)",
  },
  ...['harbor', 'openenv'].map((value) => ({
    path: 'target.kind',
    value,
    version: '0.3' as const,
    why: 'use kind verifiers instead (docs/agents.md)',
  })),
  {
    path: 'target.kind',
    value: 'builtin',
    version: '0.3',
    why: 'use target.kind shop of the plug-in examples/shop, or a target of your own (docs/environments.md)',
  },
  { path: 'calibration.hintShare', version: '0.3', why: 'an environment that is too hard is revised' },
  { path: 'training.hintShare', version: '0.3', why: 'an environment that is too hard is revised' },
  { path: 'router.embeddings', version: '0.3', why: 'similar tasks are found by their words' },
  ...['analyst', 'synthesizer', 'arms[].reflection'].map((part) => ({
    path: `${part}.requestsPerMinute`,
    version: '0.3' as const,
    why: 'lower concurrency; the endpoint says when to ask again',
  })),
  { path: 'metrics', version: '0.3', why: 'a trainer reports its own curves: set training.reportTo (docs/report.md)' },
  { path: 'router.kind', value: 'moe_gate', version: '0.3', why: 'vLLM cannot serve it; delete the line' },
  {
    path: 'composites',
    version: '0.3',
    why: 'the baseline `kind: environments` of arms trains one adapter on all environments',
  },
  { path: 'arms[].kind', value: 'joint', version: '0.3', why: 'write kind: environments, name: joint' },
  {
    path: 'arms[].kind',
    value: 'grpo_single',
    version: '0.3',
    why: 'write kind: environments, name: grpo_single, from: { capability: NAME }',
  },
  { path: 'arms[].modules', version: '0.3', why: 'write from: { folder: PATH }' },
  { path: 'arms[].kind', value: 'sft', version: '0.3', why: 'no baseline learns from conversations; delete the arm' },
];
