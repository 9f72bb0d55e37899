/** Services of docker-compose.yml and deploy/workers.yaml, as a compose program reads them. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

const root = resolve(__dirname, '../..');
export const composeFiles = ['docker-compose.yml', 'deploy/workers.yaml'];

export interface Service {
  image: string;
  user?: string;
  build?: { target: string };
  command?: string | string[];
  environment?: Record<string, string | null>;
  ports?: string[];
  restart: string;
  cap_drop?: string[];
  security_opt?: string[];
  healthcheck?: { test?: string[]; disable?: boolean };
  deploy?: { resources: { limits: { memory?: string; pids?: number } } };
}

export const VARIABLE = /(?<!\$)\$\{([A-Z0-9_]+)(?:(:?[-?])([^}]*))?\}/g;

/** Replaces variables by their values, else by their defaults; one that has neither stands in angle brackets. */
export const filled = (text: string, values: Record<string, string> = {}): string =>
  text.replace(
    VARIABLE,
    (_, name: string, how = '', rest = '') => values[name] ?? (how.endsWith('-') ? rest : `<${name}>`),
  );

export const readRepositoryFile = (file: string): string => readFileSync(join(root, file), 'utf8');

export const servicesOf = (text: string): Record<string, Service> =>
  (parse(text, { merge: true }) as { services: Record<string, Service> }).services;

/** Returns a service's command as words, and its environment. */
export function processOf(name: string, values: Record<string, string>): { words: string[]; env: NodeJS.ProcessEnv } {
  const services = Object.assign(
    {},
    ...composeFiles.map((file) => servicesOf(filled(readRepositoryFile(file), values))),
  );
  const { command = '', environment = {} } = (services as Record<string, Service>)[name]!;
  const env = Object.entries(environment).map(([key, value]) => [key, value ?? values[key]] as const);
  return {
    // A dollar sign is doubled in a compose file.
    words: (typeof command === 'string' ? command.trim().split(/\s+/) : command).map((word) =>
      word.replaceAll('$$', '$'),
    ),
    env: Object.fromEntries(env.filter(([, value]) => value !== undefined)),
  };
}
