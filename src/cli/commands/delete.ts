/**
 * `campaign delete`: removes a campaign's history, what it alone uses, and its folder. Interrupted at any moment, the same command ends it, and
 * nothing that another campaign uses is removed.
 */
import type { Command } from 'commander';
import { allOptions, examples, homeOf } from '../options';
import type { ServeOptions, SupervisedRun } from '../run/supervisor';
import type { Temporal } from '../temporal';

type DeleteOptions = ServeOptions & { yes?: boolean };

export function deleteCommand(program: Command): void {
  program
    .command('delete <name>')
    .description('delete a campaign: its folder, its history in Temporal, and what no other campaign uses')
    .option('--yes', 'do not ask')
    .addHelpText('after', examples(['campaign du demo', 'what it takes'], ['campaign delete demo --yes']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = allOptions<DeleteOptions>(command);
      const home = homeOf(options);
      const { campaignIn, homeUse, sizeText } = await import('../usage.js');
      const { confirmed } = await import('../confirm.js');
      const { UserError } = await import('../errors.js');
      const { supervised } = await import('../run/supervisor.js');
      const before = await homeUse(home);
      const { alone, isKnown } = campaignIn(before, name, home);
      const what = `delete campaign ${name} of ${home.root} and the ${sizeText(alone)} that it alone uses`;
      if (!options.yes && !(await confirmed(what))) throw new UserError('nothing was deleted');
      process.exitCode = await supervised({ options, work: (run) => deleteCampaign(run, name, isKnown) });
      if (process.exitCode === 0) console.log(`${sizeText(before.bytes - (await homeUse(home)).bytes)} freed`);
    });
}

/** @returns the exit code. */
async function deleteCampaign(run: SupervisedRun, name: string, isKnown: boolean): Promise<number> {
  const { home, output } = run;
  const { rm } = await import('node:fs/promises');
  const { join } = await import('node:path');
  const { removeNotes, removeUsed, usageOf } = await import('../../artifacts/usage.js');
  const { trainingFolders } = await import('../usage.js');
  const { openStore } = await import('../../artifacts/open-store.js');
  const store = await openStore(home.root);
  await deleteHistory(run, name, await store.id());
  if (isKnown) {
    const trainings = trainingFolders(home, await usageOf(store));
    await removeUsed(store, name);
    for (const { path, users } of trainings)
      if (users.size === 1 && users.has(name)) await rm(path, { recursive: true, force: true });
  } else {
    const why = 'it was run before uses were noted, and others may need them';
    output.note('campaign', `what it has in ${join(home.root, 'artifacts')} and its trainings stay: ${why}`);
  }
  await rm(join(home.root, name), { recursive: true, force: true });
  await removeNotes(store, name);
  output.note('campaign', `campaign ${name} is deleted; logs in ${home.logs} are of all campaigns and stay`);
  return 0;
}

async function deleteHistory(run: SupervisedRun, name: string, store: string): Promise<void> {
  const { home, options, output } = run;
  const { existsSync } = await import('node:fs');
  const { temporalPath } = await import('../project.js');
  const { startTemporal } = await import('../run/temporal-server.js');
  if (!options.temporalAddress) {
    if (!existsSync(home.temporalDatabase)) return;
    if (!temporalPath())
      return output.note('campaign', `its history stays in ${home.temporalDatabase}: no Temporal CLI is installed`);
  }
  const { temporal } = await startTemporal(run);
  try {
    await deleteExecutions(temporal, { name, store, isCluster: options.temporalAddress !== undefined });
  } finally {
    await temporal.close();
  }
}

/**
 * Asks the server to delete the campaign and its children; it has written that down when it answers, and does it in its own time.
 * @throws UserError if the campaign runs on a cluster; what a home's own server holds as running, nobody runs while we hold the home.
 */
async function deleteExecutions(
  { client }: Temporal,
  { name, store, isCluster }: { name: string; store: string; isCluster: boolean },
): Promise<void> {
  const { taskQueues } = await import('../../domain/work.js');
  const { searchAttributeNames } = await import('../../workflows/messages.js');
  const { UserError } = await import('../errors.js');
  const { namespace } = client.options;
  const query = `${searchAttributeNames.campaign} = ${JSON.stringify(name)}`;
  for await (const { workflowId, runId, status, taskQueue } of client.workflow.list({ query })) {
    if (taskQueue !== taskQueues.control(store)) continue; // another home's
    if (status.name === 'RUNNING') {
      if (isCluster) throw new UserError(`campaign ${name} is running; \`campaign cancel ${name}\` ends it`);
      await client.workflow.getHandle(workflowId, runId).terminate('deleted');
    }
    const execution = { namespace, workflowExecution: { workflowId, runId } };
    await client.workflowService.deleteWorkflowExecution(execution).catch((error: unknown) => {
      if (grpcCode(error) !== NOT_FOUND) throw error;
    });
  }
}

/** Of what is gone already, where the list is behind. */
const NOT_FOUND = 5;
const grpcCode = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;
