/**
 * Spans of workflows, for those alone that were started with a trace. Invariant: whether one was stands in its history, so that it does the same
 * whatever its worker is asked to trace, now and when it is replayed.
 */
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** Of the start, and of what it starts in turn. */
const HEADER = '_tracer-data';

export const interceptors = (): WorkflowInterceptors => {
  const outbound = {};
  return {
    inbound: [
      {
        execute(input, next) {
          if (!(HEADER in input.headers)) return next(input);
          // eslint-disable-next-line @typescript-eslint/no-require-imports -- a workflow without a trace loads nothing of it
          const traced = require('@temporalio/interceptors-opentelemetry/lib/workflow') as Traced;
          Object.setPrototypeOf(outbound, new traced.OpenTelemetryOutboundInterceptor());
          return new traced.OpenTelemetryInboundInterceptor().execute(input, next);
        },
      },
    ],
    outbound: [outbound],
  };
};

type Traced = typeof import('@temporalio/interceptors-opentelemetry/lib/workflow');
