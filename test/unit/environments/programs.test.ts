/** Programs of targets, in a namespace and without one: what they can see, what is left of them, and how their end is reported. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../../src/domain/environment';
import { hasNamespaces } from '../../../src/environments/namespace';
import { failing } from '../../support/failing';
import { agentLimits, processesWith } from '../../support/programs';
import { temporaryFolder } from '../../support/temporary-folder';

const root = temporaryFolder();
const stubs = join(root, 'stubs');
mkdirSync(stubs);
writeFileSync(join(stubs, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
const { PATH } = process.env;
const modes = [...(hasNamespaces() ? ['in a namespace'] : []), 'without namespaces'] as const;

/** Resolves once no process has this word; kills them and throws if that takes long. */
async function gone(word: string): Promise<void> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; await sleep(50))
    if (processesWith(word).length === 0) return;
  for (const pid of processesWith(word)) process.kill(pid, 'SIGKILL');
  throw new Error(`processes with ${word} are left`);
}

let next = 6_000_000 + 1000 * Number(process.env['JEST_WORKER_ID'] ?? 0);
/** Seconds of a sleep that no other test starts. */
const seconds = (): string => String(next++);

describe.each(modes)('%s', (mode) => {
  const path = mode === 'in a namespace' ? PATH : [stubs, PATH].join(delimiter);
  let open: (program: string) => Environment;
  let openAgent: typeof import('../../../src/environments/agent/kind').openAgent;
  beforeAll(async () => {
    process.env['PATH'] = path;
    await jest.isolateModulesAsync(async () => {
      const { openProcessEnvironment } = await import('../../../src/environments/process.js');
      ({ openAgent } = await import('../../../src/environments/agent/kind.js'));
      open = (program) => openProcessEnvironment({ command: [process.execPath, '-e', program] });
      const namespace = await import('../../../src/environments/namespace.js');
      expect(namespace.hasNamespaces()).toBe(mode === 'in a namespace');
    });
  });
  afterAll(() => void (process.env['PATH'] = PATH));

  /** An environment whose every answer comes after `text` has run. */
  const bridge = (text: string): Environment =>
    open(`require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      const { spawn, execFileSync } = require('node:child_process');
      ${text}
      const send = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
      if (method === 'tasks') return send({ tasks: [] });
      send({ name: 'n', version: String(globalThis.seen), policy: 'p', tools: [], maxSteps: 1, hasReference: false });
    });`);

  const agent = (code: string, more: Partial<Parameters<typeof openAgent>[0]> = {}): Environment => {
    const name = `agent-${next++}`;
    const file = join(root, `${name}.mjs`);
    const tasks = join(root, `${name}.jsonl`);
    writeFileSync(tasks, JSON.stringify({ id: 'a', split: 'train' }));
    writeFileSync(
      file,
      `import { execFileSync, spawn } from 'node:child_process';
       const headers = { authorization: 'Bearer ' + process.env.OPENAI_API_KEY, 'content-type': 'application/json' };
       const body = JSON.stringify({ model: 'x', messages: [{ role: 'user', content: 'hello' }] });
       await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', headers, body });
       ${code}`,
    );
    const command = [process.execPath, file];
    return openAgent({ ...agentLimits, command, tasks, folder: root, ...more });
  };
  async function played(environment: Environment) {
    const episode = await environment.reset({ id: 'a', seed: 0 });
    try {
      await episode.step({ role: 'assistant', content: 'x' });
      return await episode.evaluate('agent_stop');
    } finally {
      await episode.close();
      await environment.close();
    }
  }

  const leaving = {
    'in a session of its own': (left: string) =>
      `spawn('sleep', ['${left}'], { stdio: 'ignore', detached: true }).unref();`,
    'of a parent that has ended': (left: string) =>
      `execFileSync('sh', ['-c', 'setsid sh -c "setsid sleep ${left} & setsid sleep ${left} &" > /dev/null 2>&1 &']);`,
    // Without a namespace it is not found.
    ...(mode === 'in a namespace' && {
      'with an environment of its own': (left: string) =>
        `execFileSync('sh', ['-c', 'setsid env -i /bin/sleep ${left} > /dev/null 2>&1 &']);`,
    }),
  };

  test.each(Object.entries(leaving))('no process is left of an environment: one %s', async (_, leave) => {
    const left = seconds();
    const environment = bridge(leave(left));
    await environment.tasks('train');
    while (processesWith(left).length === 0) await sleep(20);
    await environment.close();
    await gone(left);
  });

  test.each(Object.entries(leaving))('no process is left of an agent and of its grader: one %s', async (_, leave) => {
    const [left, ofGrader] = [seconds(), seconds()];
    const grader = join(root, `grader-${next++}.mjs`);
    writeFileSync(
      grader,
      `import { execFileSync, spawn } from 'node:child_process'; ${leave(ofGrader)} console.log(1); process.exit();`,
    );
    const environment = agent(`${leave(left)} process.exit();`, { grader: [process.execPath, grader] });
    expect(await played(environment)).toMatchObject({ reward: 1 });
    await gone(left);
    await gone(ofGrader);
  });

  test('no process is left when the worker is killed', async () => {
    const left = seconds();
    const deaf = `${leaving['of a parent that has ended'](left)} setInterval(() => {}, 1000); // ${left}`;
    const script = `const { execFileSync } = require('node:child_process');
      const { startChild } = require('./src/environments/child-process');
      startChild({ command: [process.execPath, '-e', ${JSON.stringify(`const { execFileSync } = require('node:child_process'); ${deaf}`)}, '${left}'], readOutput() {}, onEnd() {}, onStartFailure() {} });`;
    const worker = spawn(process.execPath, ['-r', './test/support/register.cjs', '-e', script], {
      cwd: resolve(__dirname, '../../..'),
      env: { ...process.env, PATH: path },
    });
    while (!processesWith('sleep').some((pid) => processesWith(left).includes(pid))) await sleep(50);
    worker.kill('SIGKILL');
    await once(worker, 'exit');
    await gone(left);
  });

  test.each([
    ['an exit code', 'process.exit(7);', /ended with exit code 7\b/],
    ['a signal', `process.kill(process.pid, 'SIGSEGV');`, /ended with .*SIGSEGV/],
    ['a signal that it sends itself', `process.kill(process.pid, 'SIGTERM'); return;`, /ended with .*SIGTERM/],
  ])('its end is reported: %s', async (_, text, message) => {
    const environment = bridge(text);
    await expect(environment.describe()).rejects.toMatchObject(failing('EnvironmentDied', message));
    await environment.close();
  });

  test('no program reads a key of its worker in /proc, however the worker got it', async () => {
    const [told, file, tasks, list] = ['told', 'evil.cjs', 'evil.jsonl', 'keys.env'].map((name) =>
      join(root, `${next}-${name}`),
    ) as [string, string, string, string];
    const key = `sk-${next++}`;
    writeFileSync(tasks, JSON.stringify({ id: 'a', split: 'train' }));
    writeFileSync(list, `LISTED="${key}"\n`);
    // Of the processes that it sees it counts those whose environment it can read and those that hold the key.
    writeFileSync(
      file,
      `const fs = require('node:fs');
       const read = (pid) => { try { return fs.readFileSync('/proc/' + pid + '/environ', 'latin1'); } catch { return ''; } };
       const seen = fs.readdirSync('/proc').filter(Number).map(read).filter(Boolean);
       fs.appendFileSync('${told}', process.argv[2] + ' ' + (seen.length > 0) + ' ' + seen.filter((text) => text.includes('${key}')).length + '\\n');
       if (process.argv[2] === 'process') console.log(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tasks: [] } }));
       const headers = { authorization: 'Bearer ' + process.env.OPENAI_API_KEY, 'content-type': 'application/json' };
       const body = JSON.stringify({ model: 'x', messages: [{ role: 'user', content: 'hello' }] });
       if (process.argv[2] === 'agent') fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', headers, body });
       if (process.argv[2] === 'grader') console.log(1);`,
    );
    const script = `require('./src/domain/secrets').takeKeys();
      const { openProcessEnvironment } = require('./src/environments/process');
      const { openAgent } = require('./src/environments/agent/kind');
      const command = (name) => [process.execPath, '${file}', name];
      (async () => {
        const process_ = openProcessEnvironment({ command: command('process') });
        await process_.tasks('train');
        await process_.close();
        const agent = openAgent({ command: command('agent'), grader: command('grader'), tasks: '${tasks}', folder: '/', version: '1', readOnlyTools: [], maxSteps: 2, silenceSeconds: 60 });
        const episode = await agent.reset({ id: 'a', seed: 0 });
        await episode.step({ role: 'assistant', content: 'x' });
        await episode.evaluate('agent_stop');
        await episode.close();
        await agent.close();
        console.log(process.env.OPENAI_API_KEY === '${key}', process.env.LISTED === '${key}', require('fs').existsSync('${list}'));
      })();`;
    const worker = spawn(process.execPath, ['-r', './test/support/register.cjs', '-e', script.replace(/\n/g, ' ')], {
      cwd: resolve(__dirname, '../../..'),
      env: {
        ...process.env,
        PATH: path,
        OPENAI_API_KEY: key,
        ODD: key,
        NODE_AUTH_TOKEN: key,
        CAMPAIGN_KEYS_FILE: list,
      },
    });
    const [said, problems] = await Promise.all([text(worker.stdout), text(worker.stderr), once(worker, 'exit')]);
    expect({ said, problems }).toEqual({ said: 'true true false\n', problems: '' });
    expect(readFileSync(told, 'utf8')).toBe('process true 0\nagent true 0\ngrader true 0\n');
  });

  const processes = `require('node:fs').readdirSync('/proc').filter((name) => Number(name))`;
  const own = `require('node:fs').existsSync('/proc/${process.pid}/stat')`;
  if (mode === 'in a namespace')
    test('it sees its own processes alone, and can look at no other even where it unmounts /proc', async () => {
      const environment = bridge(`globalThis.seen = ${processes}.length < 5 && !${own};`);
      expect((await environment.describe()).version).toBe('true');
      await environment.close();
      const unmounting = bridge(`
        try { execFileSync('umount', ['-l', '/proc'], { stdio: 'ignore' }); } catch {}
        try { globalThis.seen = require('node:fs').readFileSync('/proc/${process.pid}/environ').length; }
        catch (error) { globalThis.seen = error.code; }`);
      expect((await unmounting.describe()).version).toMatch(/^(ENOENT|EACCES)$/);
      await unmounting.close();
    });
});
