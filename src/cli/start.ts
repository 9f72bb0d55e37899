/** `campaign start`: starts a campaign on a cluster that is up already. It decides about a known name as `campaign run` does. */
import { taskQueues } from '../domain/work';
import { baseIdOf, travelling } from './given';
import { type CommonOptions, homeOf } from './options';
import { type Decision, decide, readStart, type StartOptions } from './run/campaign';
import { addressOf, campaignState, connect, hasWorkers, registerSearchAttributes, startCampaign } from './temporal';

const decisions: Record<Decision, string> = {
  start: 'started',
  attach: 'is running already',
  show: 'has ended already',
};

export async function startFile(file: string, options: StartOptions & CommonOptions): Promise<void> {
  const home = homeOf(options);
  const at = addressOf(options);
  const { until, force } = options;
  const read = await readStart({ file, home, options });
  const { name } = read.campaign;
  const start = { ...read, store: await read.store(), until, force };
  const temporal = await connect(at);
  try {
    await registerSearchAttributes(temporal, at, (text) => console.error(text));
    const decision = decide(await campaignState(temporal, name), { ...start, name });
    if (decision === 'start') {
      const base = await baseIdOf(read.campaign, home);
      await startCampaign(temporal, { ...start, campaign: await travelling({ ...start, home, base }) });
    }
    const queue = taskQueues.control(start.store);
    const isWaiting = decision !== 'show' && !(await hasWorkers(temporal, queue));
    const waitsFor = isWaiting ? `control workers of ${home.root} (${queue})` : undefined;
    const status = decisions[decision];
    if (options.json) return console.log(JSON.stringify({ campaign: name, status, waitsFor }));
    console.log(`campaign ${name} ${status}; \`campaign watch ${name}\` follows it`);
    const { metrics = [] } = read.campaign;
    if (metrics.length > 0)
      console.log(`\`campaign metrics ${name} --to ${metrics.join(',')} --follow\` writes its curves while it runs`);
    if (waitsFor) console.log(`none of the ${waitsFor} runs now: it waits until one is started`);
  } finally {
    await temporal.close();
  }
}
