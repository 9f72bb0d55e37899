/** The Python that runs trainers and the embedded policy server: there, new enough, and with the packages that the trainer names. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { messageOf } from '../errors';
import { projectRoot, pythonPath } from '../project';
import { failed, passed, type Check } from './check';

const INSTALL =
  'run `make install`, or set CAMPAIGN_PYTHON to a Python that has the packages of trainer/requirements.lock';

// importlib.metadata reads what is installed without importing it: torch alone would take seconds.
const PROBE = `
import importlib.metadata as m, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({"python": list(sys.version_info[:3]), "packages": {n: version(n) for n in sys.argv[1:]}}))`;

const probeSchema = z.object({
  python: z.tuple([z.number(), z.number(), z.number()]),
  packages: z.record(z.string(), z.string().nullable()),
});

/** Interpreter and packages, as one or two checks. */
export async function checkPython(python = pythonPath()): Promise<Check[]> {
  if (!existsSync(python)) return [failed('Python', `there is no ${python}`, INSTALL)];
  const wanted = requiredPackages();
  let found: z.infer<typeof probeSchema>;
  try {
    const { stdout } = await promisify(execFile)(python, ['-c', PROBE, ...wanted.keys()], { timeout: 30_000 });
    found = probeSchema.parse(JSON.parse(stdout));
  } catch (error) {
    return [failed('Python', `${python} does not run: ${messageOf(error).slice(0, 200)}`, INSTALL)];
  }
  const version = found.python.join('.');
  const [major, minor] = found.python;
  if (major < 3 || (major === 3 && minor < 11))
    return [
      failed(
        'Python',
        `${python} is version ${version}`,
        'run `make install`, which finds or fetches Python 3.11 or newer',
      ),
    ];
  return [passed('Python', `${version} (${python})`), checkPackages(found.packages, wanted)];
}

function checkPackages(found: Record<string, string | null>, wanted: Map<string, string | undefined>): Check {
  const wrong = [...wanted].flatMap(([name, pinned]) => {
    const version = found[name];
    if (!version) return [`${name} is missing`];
    // A local suffix (2.13.0+cpu) names a build, not a version.
    return pinned && version.split('+')[0] !== pinned ? [`${name} is ${version}, not ${pinned}`] : [];
  });
  return wrong.length > 0
    ? failed('Python packages', wrong.join(', '), INSTALL)
    : passed('Python packages', [...wanted.keys()].map((name) => `${name} ${found[name]}`).join(', '));
}

/** Names and pinned versions of trainer/requirements.in. */
function requiredPackages(): Map<string, string | undefined> {
  const lines = readFileSync(join(projectRoot, 'trainer/requirements.in'), 'utf8').split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, name, version] = /^([A-Za-z0-9._-]+)(?:==([^\s;#]+))?/.exec(line) ?? [];
      return name ? [[name, version] as const] : [];
    }),
  );
}
