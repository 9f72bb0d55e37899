/** Builds the workflow bundle ahead of time (`npm run build`), so that a worker starts without webpack. */
import { bundleWorkflowCode } from '@temporalio/worker';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const bundlePath = join(__dirname, '..', 'workflow-bundle.js');

async function main(): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: [require.resolve('../workflows/tracing')],
    failureConverterPath: require.resolve('../temporal/failure-converter'),
  });
  await writeFile(bundlePath, code);
}

if (require.main === module) void main();
