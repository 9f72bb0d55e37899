/**
 * The shop as somebody's own environment, over the protocol: without reference actions and rules, its tasks in two groups. With the argument
 * `counts what is open`, an episode's id is the number of the open ones, as a bridge has it that forgets closed ones. With the arguments
 * `says FILE`, its first message begins with the text of the file.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath, URL } from 'node:url';

const counts = process.argv[2] === 'counts what is open';
const greeting = process.argv[2] === 'says' ? readFileSync(process.argv[3], 'utf8') : '';
const [register, program] = ['register.cjs', '../contract/serve-shop.ts'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const shop = spawn(process.execPath, ['-r', register, program], { stdio: ['pipe', 'pipe', 'inherit'] });
/** The shop's ids by ours, and what is asked by the number of the request. */
const episodes = new Map();
const asked = new Map();

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line);
  const { episode } = request.params;
  asked.set(request.id, { method: request.method });
  if (episode !== undefined) request.params.episode = episodes.get(episode) ?? episode;
  if (request.method === 'close') episodes.delete(episode);
  shop.stdin.write(`${JSON.stringify(request)}\n`);
});
process.stdin.on('end', () => shop.stdin.end());

createInterface({ input: shop.stdout }).on('line', (line) => {
  const answer = JSON.parse(line);
  const { method } = asked.get(answer.id);
  const { result } = answer;
  if (result && method === 'describe') Object.assign(result, { name: 'desk', hasReference: false, rules: [] });
  if (result && method === 'tasks')
    result.tasks.forEach((task, n) => (task.groups = [n % 3 === 0 ? 'loans' : 'returns']));
  if (result && method === 'evaluate') delete result.reference;
  if (result && method === 'reset') {
    const own = counts ? String(episodes.size) : result.episode;
    episodes.set(own, result.episode);
    result.episode = own;
    result.messages[0].content = greeting + result.messages[0].content;
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
