/** The images and compose files: no Docker is at hand where tests run, so they are held to the compose schema and to what they say of themselves. */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { taskQueues } from '../../src/domain/work';
import { composeFiles as files, filled, readRepositoryFile as read, servicesOf } from '../support/compose';

const root = resolve(__dirname, '../..');
const dockerfile = read('deploy/Dockerfile');
const stages = [...dockerfile.matchAll(/^FROM .+ AS (\S+)$/gm)].map(([, name]) => name!);

const raw = files.map(read);

test('both compose files keep to the schema of the compose specification', () => {
  const linter = join(root, 'node_modules/dclint/bin/dclint.cjs');
  const { stdout } = spawnSync(process.execPath, [linter, '--formatter', 'json', ...files], { cwd: root });
  const results = JSON.parse(String(stdout)) as { messages: { rule: string }[] }[];
  expect(results).toHaveLength(files.length);
  expect(results.flatMap(({ messages }) => messages.filter(({ rule }) => rule === 'invalid-schema'))).toEqual([]);
});

test.each(raw.flatMap((text) => Object.entries(servicesOf(filled(text)))))(
  '%s: loopback, health check, limits, no root, no secret of its own',
  (_, service) => {
    const { image, user, build, environment = {}, ports = [], healthcheck, deploy } = service;
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    // What runs once, to its end, is healthy by that.
    expect(service.restart.startsWith('on-failure') ? healthcheck?.disable : healthcheck?.test).toBeTruthy();
    expect(deploy?.resources.limits.memory).toMatch(/^\d+[mg]$/);
    expect(deploy?.resources.limits.pids).toBeGreaterThan(0);
    expect(service.cap_drop).toEqual(['ALL']);
    expect(service.security_opt).toContain('no-new-privileges:true');
    for (const [name, value] of Object.entries(environment))
      if (/PASSWORD|PWD|SECRET|TOKEN|KEY/.test(name)) expect(value ?? '<>').toMatch(/^(<.*>|\/run\/secrets\/\w+)$/);
    if (build) expect(stages).toContain(build.target);
    else {
      expect(user).toMatch(/^([1-9]\d*:\d+|postgres)$/);
      expect(image).toMatch(/:v?\d+\.\d+/);
    }
  },
);

test('each task queue has a service, and no image runs as root', () => {
  const services = Object.keys(servicesOf(raw[1]!));
  expect(services).toEqual(expect.arrayContaining(Object.keys(taskQueues)));
  expect(dockerfile.match(/^USER .+$/gm)).toEqual(['USER 1000', 'USER 2000']);
});

test('what is reached without a password changes nothing, and a policy server has a key', () => {
  const services = { ...servicesOf(raw[0]!), ...servicesOf(raw[1]!) };
  expect(services['temporal-ui']!.environment).toMatchObject({ TEMPORAL_DISABLE_WRITE_ACTIONS: 'true' });
  expect(services['vllm']!.environment!['VLLM_API_KEY']).toMatch(/^\$\{POLICY_SERVER_API_KEY:\?/);
});
