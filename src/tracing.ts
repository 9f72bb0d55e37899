/**
 * OpenTelemetry's traces (docs/operations.md): of a campaign from the command that starts it through workflows and steps, and of each rollout
 * with its requests. They go to OTEL_EXPORTER_OTLP_ENDPOINT; where that is not set, nothing is traced and nothing of it is loaded. Spans hold no
 * text of conversations.
 */
import type { Attributes, Span } from '@opentelemetry/api';
import type { WorkflowClientInterceptor } from '@temporalio/client';

let api: typeof import('@opentelemetry/api') | undefined;

/** Traces what this process does, as `service` unless OTEL_SERVICE_NAME says otherwise; undefined where nothing is traced. */
export async function startTracing(service: string) {
  if (!process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] || process.env['OTEL_SDK_DISABLED'] === 'true') return undefined;
  const [opentelemetry, sdk, { OTLPTraceExporter }, { detectResourcesSync, envDetectorSync, Resource }, temporal] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@temporalio/interceptors-opentelemetry'),
    ]);
  const told = detectResourcesSync({ detectors: [envDetectorSync] });
  const resource = new Resource({ 'service.name': service }).merge(told);
  const spanProcessor = new sdk.BatchSpanProcessor(new OTLPTraceExporter());
  const provider = new sdk.NodeTracerProvider({ resource, spanProcessors: [spanProcessor] });
  provider.register();
  api = opentelemetry;
  return { temporal, resource, spanProcessor, flush: () => provider.forceFlush() };
}

let started: ReturnType<typeof startTracing> | undefined;

/** For a client of Temporal: with what it starts a campaign's trace begins. Of its other requests there are no spans: `watch` asks every second. */
export async function tracedStarts() {
  const tracing = await (started ??= startTracing('campaign'));
  if (!tracing) return { interceptors: {}, flush: () => Promise.resolve() };
  const all = new tracing.temporal.OpenTelemetryWorkflowClientInterceptor();
  const workflow: WorkflowClientInterceptor = {
    startWithDetails: (input, next) => all.startWithDetails(input, next),
    signalWithStart: (input, next) => all.signalWithStart(input, next),
  };
  return { interceptors: { workflow: [workflow] }, flush: tracing.flush };
}

/** The headers of a request that belongs to the span which is active here. */
export function traceHeaders(): Record<string, string> {
  const headers = {};
  api?.propagation.inject(api.context.active(), headers);
  return headers;
}

interface Traced {
  name: string;
  attributes: Attributes;
  /** Whether it begins a trace of its own, which is linked to what it is part of, and is sampled by itself. */
  isRoot?: boolean;
}

/** Does the work in a span; without one where nothing is traced. */
export async function traced<Result>(
  { name, attributes, isRoot = false }: Traced,
  work: (span?: Span) => Promise<Result>,
): Promise<Result> {
  if (!api) return work();
  const { context, trace, SpanKind, SpanStatusCode } = api;
  const parent = trace.getSpanContext(context.active());
  const links = isRoot && parent ? [{ context: parent }] : [];
  const options = { attributes, root: isRoot, links, kind: isRoot ? SpanKind.INTERNAL : SpanKind.CLIENT };
  return trace.getTracer('campaign').startActiveSpan(name, options, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      const { type, name: kind } = error as { type?: string; name: string };
      span.setStatus({ code: SpanStatusCode.ERROR, message: type ?? kind });
      throw error;
    } finally {
      span.end();
    }
  });
}
