/**
 * Services that Jest starts once for all test files: Temporal's dev server, an S3 server, Chromium and the bundle of the workflows. Jest calls the
 * default export before the tests; a service starts when a test file first asks for it.
 */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

interface Service {
  /** Called for each test file. */
  about: () => object;
  stop?: () => Promise<unknown>;
}

// The sources are loaded when they are needed: most runs of single tests need none of them.
const starters: Record<string, () => Promise<Service>> = {
  async temporal() {
    const { namespaces, quiet, startDevServer } = await import('../workflows/environment.js');
    quiet();
    const server = await startDevServer();
    const free = [...namespaces];
    return { about: () => ({ address: server.address, namespace: free.shift() }), stop: () => server.teardown() };
  },
  async bundle() {
    const { makeWorkflowBundle } = await import('../workflows/environment.js');
    const bundle = await makeWorkflowBundle();
    return { about: () => bundle };
  },
  async s3() {
    const { startS3Server } = await import('./s3-server.js');
    const { env, close } = await startS3Server();
    return { about: () => env, stop: close };
  },
  async chromium() {
    const { launchChromium } = await import('./browser.js');
    const server = await launchChromium();
    return { about: () => ({ address: server.wsEndpoint() }), stop: () => server.close() };
  },
};

const started = new Map<string, Promise<Service>>();

/** Called by Jest in its main process. */
export default async function serve(): Promise<void> {
  // From here on this process loads TypeScript.
  createRequire(__filename)('./register.cjs');
  const server = createServer((request, response) => {
    const name = request.url!.slice(1);
    const service = started.get(name) ?? starters[name]!();
    started.set(name, service);
    service.then(
      ({ about }) => response.end(JSON.stringify(about())),
      (error: Error) => response.writeHead(500).end(String(error.stack)),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  process.env['TEST_SERVICES'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  Object.assign(globalThis, {
    async stopServices() {
      server.close();
      const running = await Promise.allSettled(started.values());
      await Promise.all(running.map((one) => one.status === 'fulfilled' && one.value.stop?.()));
    },
  });
}

/** Returns how to reach a service that runs for all test files; undefined outside Jest. */
export async function shared<About>(name: keyof typeof starters): Promise<About | undefined> {
  const services = process.env['TEST_SERVICES'];
  if (services === undefined) return undefined;
  const answer = await fetch(`${services}/${name}`);
  if (!answer.ok) throw new Error(`${name} did not start: ${await answer.text()}`);
  return (await answer.json()) as About;
}
