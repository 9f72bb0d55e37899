/** Fields of every endpoint that a campaign file names. Invariant: a key that was put where none belongs is refused, and can be left unsaid. */
import { z } from 'zod';

/** Of any wait for an answer: a day. Node's timers hold no more than 24 of them, and end at once beyond. */
export const MAX_SILENCE_SECONDS = 86_400;

/** Seconds that one waits for an answer. */
export const silenceField = z.number().int().positive().max(MAX_SILENCE_SECONDS);

/** A user, and perhaps a password, before the host. */
export const hasCredentials = (url: string): boolean => /^[a-z][a-z\d+.-]*:[/\\]*[^/\\?#]*@/i.test(url);

/** Ports of other protocols, which HTTP clients refuse by the standard (https://fetch.spec.whatwg.org/#port-blocking). */
export const blockedPorts: readonly number[] = [
  ...[1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109],
  ...[
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
  ],
  ...[532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060],
  ...[5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
];
const portOf = (url: string): number => Number(/^[a-z]+:\/\/(?:\[[^\]]*\]|[^/?#:]*):(\d+)/i.exec(url)?.[1]);

/** A URL whose server's key is elsewhere: `key` says where. */
export const keyedUrl = (key: string) =>
  z
    .url({ protocol: /^https?$/ })
    .refine((url) => !hasCredentials(url), `a URL without user and password; ${key}`)
    .refine((url) => !blockedPorts.includes(portOf(url)), {
      error: ({ input }) =>
        `a URL with another port: ${portOf(String(input))} is of another protocol, and HTTP clients refuse it`,
    });

/** Of the API, e.g. https://api.example.com/v1. */
export const urlField = keyedUrl('apiKeyEnv names the variable with the key');

/** Environment variable with the API key; left out for servers that need none. */
export const apiKeyEnvField = z
  .string()
  .regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable, such as EXAMPLE_API_KEY: the key itself belongs in it')
  .optional();
