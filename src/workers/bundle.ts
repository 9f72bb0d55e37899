/** Builds the workflow bundle ahead of time (`npm run build`), so that a worker starts without webpack. */
import { bundleWorkflowCode } from '@temporalio/worker';
import { writeFile } from 'node:fs/promises';
import { builtBundle } from './versions';

/** The workflow part of Temporal's OpenTelemetry plug-in, which a bundle that is built ahead has to contain. */
export const interceptorModules = [require.resolve('@temporalio/interceptors-opentelemetry/lib/workflow-interceptors')];

/** Discards the spans of workflows where nothing is traced. */
export const noSpans = { exporter: { export: { fn: () => undefined } } };

async function main(): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: interceptorModules,
  });
  await writeFile(builtBundle, code);
}

if (require.main === module) void main();
