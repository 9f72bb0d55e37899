/** The first two stages: base rollouts, then discovery, N labeling passes, selection. */
import { basePolicy, control } from './steps';
import { required, rollOutTarget, type Run } from './run';

export async function rolloutsStage(run: Run): Promise<void> {
  const { config, prepared, status, found } = run;
  status.detail('rollouts', `${prepared.tasks.discovery} train tasks, base model`);
  found.baseRollouts = await rollOutTarget(run, {
    purpose: 'base rollouts',
    policy: basePolicy(prepared.base),
    tasks: 'discovery',
    attempts: config.rollouts.perTask,
    sampling: config.rollouts.sampling,
    maxSteps: config.rollouts.maxSteps,
  });
}

export async function selectionStage({ config, status, found }: Run): Promise<void> {
  const { target, selection: rule, seed } = config;
  const rollouts = required(found.baseRollouts).ref;
  const { ref: candidates } = await status.gate.step(() =>
    control('discover candidate capabilities').discover({ target, rule, rollouts }),
  );
  const labels = await status.gate.step(() =>
    Promise.all(
      Array.from({ length: rule.passes }, (_, pass) =>
        control(`labeling pass ${pass + 1} of ${rule.passes}`).label({ target, rollouts, candidates, pass, seed }),
      ),
    ),
  );
  const { ref, selected } = await status.gate.step(() => control('select').select({ rule, candidates, labels }));
  found.selection = { candidates, labels, selection: ref, selected };
  status.detail('selection', selected.map((s) => s.candidate.name).join(', ') || 'nothing selected');
}
