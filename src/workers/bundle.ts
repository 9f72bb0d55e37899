/** Builds the workflow bundle ahead of time (`npm run build`), so that a worker starts without webpack; and names its version. */
import { bundleWorkflowCode, type WorkerDeploymentOptions } from '@temporalio/worker';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../store/hash';

export const bundlePath = join(__dirname, '..', 'workflow-bundle.js');

/** The workflow part of Temporal's OpenTelemetry plug-in, which a bundle that is built ahead has to contain. */
export const interceptorModules = [require.resolve('@temporalio/interceptors-opentelemetry/lib/workflow-interceptors')];

/** Discards the spans of workflows where nothing is traced. */
export const noSpans = { exporter: { export: { fn: () => undefined } } };

/** Of a control worker beside others with other code: a campaign and its children stay with the version that they began with. */
export const pinnedTo = (code: string, taskQueue: string): WorkerDeploymentOptions => ({
  useWorkerVersioning: true,
  version: { deploymentName: taskQueue, buildId: sha256(code).slice(0, 12) },
  defaultVersioningBehavior: 'PINNED',
});

async function main(): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: interceptorModules,
  });
  await writeFile(bundlePath, code);
}

if (require.main === module) void main();
