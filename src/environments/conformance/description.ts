/** `describe`: the shape, the tools' schemas, the rules. */
import { environmentDescriptionSchema, type EnvironmentDescription } from '../../domain/environment';
import { toolsProblem } from '../json-schema';
import { policyRulesProblem } from '../policy-rules';
import { firstIssue } from '../protocol';
import { quoted } from '../trouble';
import type { Findings } from './finding';

/** False if nothing more can be checked. */
export function checkDescription(description: EnvironmentDescription, { add, note }: Findings): boolean {
  const parsed = environmentDescriptionSchema.safeParse(description);
  if (!parsed.success) {
    add('describe', firstIssue(parsed.error), 'return this field in the shape of the protocol');
    return false;
  }
  const malformed = toolsProblem(description.tools);
  if (malformed) {
    add('describe', `${malformed.path.join('.')}: ${malformed.message}`, 'write it as JSON Schema');
    return false;
  }
  if (description.policy.trim() === '')
    add('describe', 'policy is empty', "write the agent's rules: they are the system message");
  if (description.tools.length === 0)
    note('describe', 'tools is empty: the agent only talks', 'describe the tools, if there are any that it may call');
  const names = description.tools.map(({ name }) => name);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined) add('describe', `tools holds ${quoted(twice)} twice`, 'give every tool its own name');
  for (const [n, tool] of description.tools.entries()) checkTool(tool, `tools.${n}`, add);
  checkRules(description, add);
  return true;
}

function checkTool(
  { name, description, parameters }: EnvironmentDescription['tools'][number],
  path: string,
  add: Findings['add'],
): void {
  const of = `(tool ${quoted(name, 60)})`;
  if (!/^[\w-]{1,64}$/.test(name))
    add(
      'describe',
      `${path}.name: "${quoted(name, 60)}"`,
      'use up to 64 letters, digits, _ and -, as models can call it',
    );
  if (description.trim() === '')
    add(
      'describe',
      `${path}.description is empty ${of}`,
      'say what the tool does: it is all that the agent knows of it',
    );
  if (parameters.type !== 'object')
    add('describe', `${path}.parameters.type is ${parameters.type} ${of}`, 'make it "object"');
  const unknown = (parameters.required ?? []).filter((field) => !(field in (parameters.properties ?? {})));
  if (unknown.length > 0) {
    add(
      'describe',
      `${path}.parameters.required names ${quoted(unknown.join(', '))} ${of}`,
      'describe each required field in properties',
    );
  }
}

/** A rule of a kind that parts of the method read is wrong here, not where it is read. */
function checkRules(description: EnvironmentDescription, add: Findings['add']): void {
  const problem = policyRulesProblem(description);
  if (problem === undefined) return;
  const [what = '', fix = ''] = problem.split('; ');
  add('describe', what, fix);
}
