/**
 * Failures whose messages and stacks are payloads, so that the codec encrypts them. It is in the bundle of workflows, too, which have no environment:
 * there the worker says whether it encrypts (`bundleFor`).
 */
import { DefaultFailureConverter } from '@temporalio/common';

declare const CAMPAIGN_ENCRYPTS: true | undefined;

export const failureConverter = new DefaultFailureConverter({
  encodeCommonAttributes: typeof process !== 'undefined' || typeof CAMPAIGN_ENCRYPTS !== 'undefined',
});
