/** Temporal's OpenTelemetry plug-in. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT; without that variable nothing is traced and no tracing code is loaded. */

/** Returns the plug-ins for a client or worker, and a function that sends the remaining spans. OTEL_SERVICE_NAME replaces `service`. */
export async function loadTracing(service: string) {
  if (!process.env['OTEL_EXPORTER_OTLP_ENDPOINT']) return { plugins: [], flush: () => Promise.resolve() };
  const [sdk, { OTLPTraceExporter }, { detectResourcesSync, envDetectorSync, Resource }, { OpenTelemetryPlugin }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@temporalio/interceptors-opentelemetry'),
    ]);
  const fromVariables = detectResourcesSync({ detectors: [envDetectorSync] });
  const resource = new Resource({ 'service.name': service }).merge(fromVariables);
  const spanProcessor = new sdk.BatchSpanProcessor(new OTLPTraceExporter());
  const provider = new sdk.NodeTracerProvider({ resource, spanProcessors: [spanProcessor] });
  provider.register();
  return { plugins: [new OpenTelemetryPlugin({ resource, spanProcessor })], flush: () => provider.forceFlush() };
}
