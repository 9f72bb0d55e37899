/** The shop as a user's own environment over the protocol, without reference actions and rules, its tasks in two groups. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath, URL } from 'node:url';

const [register, program] = ['register.cjs', 'serve-shop.ts'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const shop = spawn(process.execPath, ['-r', register, program], { stdio: ['pipe', 'pipe', 'inherit'] });
/** Methods by the number of the request. */
const asked = new Map();

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  asked.set(id, method);
  shop.stdin.write(`${line}\n`);
});
process.stdin.on('end', () => shop.stdin.end());

createInterface({ input: shop.stdout }).on('line', (line) => {
  const answer = JSON.parse(line);
  const method = asked.get(answer.id);
  const { result } = answer;
  if (result && method === 'describe') Object.assign(result, { name: 'desk', hasReference: false, rules: [] });
  if (result && method === 'tasks')
    result.tasks.forEach((task, n) => (task.groups = [n % 3 === 0 ? 'loans' : 'returns']));
  if (result && method === 'evaluate') delete result.reference;
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
