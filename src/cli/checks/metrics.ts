/** The tools that a campaign's curves are written for: whether their Python packages are there. Without them a campaign runs as well. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../artifacts/given';
import type { CheckItem } from '../../checks/check';
import type { MetricsTool } from '../../domain/work';

/** Python with the packages: $CAMPAIGN_METRICS_PYTHON, else the virtual environment that `make metrics` makes. */
export const metricsPython = (): string =>
  process.env['CAMPAIGN_METRICS_PYTHON'] ?? join(projectRoot, '.venv-metrics/bin/python');

const FIX = 'run `make metrics`, or name a Python that has it in CAMPAIGN_METRICS_PYTHON';
const VERSION = 'import importlib.metadata as m, sys; print(m.version(sys.argv[1]))';

/** One for each tool; what can't be had is a warning, with how to get it. */
export const metricsChecks = (tools: readonly MetricsTool[]): CheckItem[] =>
  tools.map((tool) => ({
    name: `curves for ${tool}`,
    async run() {
      const python = metricsPython();
      if (!existsSync(python)) return { warning: `none are written: there is no ${python}; ${FIX}` };
      try {
        const { stdout } = await promisify(execFile)(python, ['-c', VERSION, tool], { timeout: 30_000 });
        return `${tool} ${stdout.trim()} (${python})`;
      } catch {
        return { warning: `none are written: ${python} has no package ${tool}; ${FIX}` };
      }
    },
  }));

/** Those of the tools that were found. */
export const toolsFound = (tools: readonly MetricsTool[], checks: readonly { name: string; warning?: true }[]) =>
  tools.filter((tool) => checks.some(({ name, warning }) => name === `curves for ${tool}` && !warning));
