/** Installs the SDK's logger and, where CAMPAIGN_METRICS names an address, its Prometheus endpoint (docs/operations.md). */
import { Runtime } from '@temporalio/worker';
import { reasonOf } from '../domain/failures';

/** Must be called before the worker connects. Throws if the address can't be bound. */
export function installRuntime(): void {
  const { CAMPAIGN_METRICS: bindAddress } = process.env;
  if (!bindAddress) return void Runtime.install({});
  const prometheus = { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };
  try {
    Runtime.install({ telemetryOptions: { metrics: { prometheus } } });
  } catch (error) {
    const fix = 'give a free address of this machine, such as 127.0.0.1:9464';
    throw new Error(`CAMPAIGN_METRICS is ${bindAddress}: ${reasonOf(error)}; ${fix}`, { cause: error });
  }
}
