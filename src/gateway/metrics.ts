/** What the gateway counts for Prometheus. Labels come in bounded numbers: served models, policies, statuses; never a client's own words. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export function createMetrics(conversations: () => number) {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'gateway_conversations',
    help: 'Conversations that are known',
    registers,
    collect() {
      this.set(conversations());
    },
  });
  return {
    registry,
    running: new Gauge({ name: 'gateway_running', help: 'Requests that are being answered', registers }),
    requests: new Counter({
      name: 'gateway_requests_total',
      help: 'Chat completions by model and status of the answer; 499: its client had gone',
      labelNames: ['model', 'status'],
      registers,
    }),
    routed: new Counter({
      name: 'gateway_routed_total',
      help: 'Conversations by the policy that the router chose',
      labelNames: ['policy'],
      registers,
    }),
    routingSeconds: new Histogram({
      name: 'gateway_routing_seconds',
      help: 'How long choosing took',
      buckets: [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
      registers,
    }),
    seconds: new Histogram({
      name: 'gateway_request_seconds',
      help: 'From the whole request to the whole answer, by policy',
      labelNames: ['policy'],
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300],
      registers,
    }),
    tokens: new Counter({
      name: 'gateway_tokens_total',
      help: 'Tokens by policy and kind: prompt or completion',
      labelNames: ['policy', 'kind'],
      registers,
    }),
    reloads: new Counter({ name: 'gateway_reloads_total', help: 'Newer campaigns that were taken up', registers }),
  };
}
