/** A client that costs little: it sends bodies that are ready-made, and looks at nothing in the answers. */
import { Agent, request as httpRequest } from 'node:http';

export function openPoster(o: { url: string; connections: number }) {
  const agent = new Agent({ keepAlive: true, maxSockets: o.connections });
  return {
    /** Resolves with the end of the answer, which must be a 200. */
    post: (body: string) =>
      new Promise<void>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
        const sent = httpRequest(`${o.url}/v1/chat/completions`, { method: 'POST', agent, headers }, (response) => {
          if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
          response.resume().on('end', resolve);
        });
        sent.on('error', reject).end(body);
      }),
    close: () => agent.destroy(),
  };
}
