/** Calls that an environment's own schemas and reference actions allow. Invariant: the arguments fit the tool's parameters. */
import type { Action } from '../../domain/environment';
import type { AssistantMessage, ToolSchema } from '../../domain/messages';
import { valueProblem, exampleOf } from '../json-schema';
import type { Checked, Sample } from './checked';
import { callsOf, say } from './playing';

/** The sampled task of train with the most reference actions, else the first. */
export function richest(samples: readonly Sample[]): Sample {
  const actions = (sample: Sample) => sample.untouched?.reference?.actions.length ?? 0;
  const train = samples.filter(({ split }) => split === 'train');
  return train.reduce((best, sample) => (actions(sample) > actions(best) ? sample : best));
}

/** The reference's own values by field: identifiers that there are. */
function knownValues(actions: readonly Action[]): Map<string, unknown> {
  return new Map(actions.flatMap((action) => Object.entries(action.arguments)));
}

/** Undefined where no arguments can be made up that fit. */
export function validCall(tool: ToolSchema, actions: readonly Action[] = []): Action | undefined {
  const own = actions.find(({ name }) => name === tool.name);
  const fits = (values: unknown): values is Action['arguments'] =>
    typeof values === 'object' && values !== null && valueProblem(tool.parameters, values) === undefined;
  for (const known of [knownValues(actions), new Map<string, unknown>()]) {
    const values = own?.arguments ?? exampleOf({ schema: tool.parameters, known });
    if (fits(values)) return { name: tool.name, arguments: values };
  }
  return undefined;
}

export const isRead = ({ annotations }: ToolSchema): boolean => annotations?.readOnlyHint === true;

const READS = 2;
const WRITES = 4;

/** Reads, writes, and reads again: what one episode does to another shows in it. The last words end most conversations. */
export function busyScript({ description, samples }: Checked, sample = richest(samples)): AssistantMessage[] {
  const { tools } = description;
  const { actions = [], tell = [] } = sample.untouched?.reference ?? {};
  const callsTo = (some: ToolSchema[]) => some.flatMap((tool) => validCall(tool, actions) ?? []);
  const reads = callsTo(tools.filter(isRead).slice(0, READS));
  const writes = actions.length > 0 ? actions : callsTo(tools.filter((tool) => !isRead(tool)).slice(0, WRITES));
  return [...[...reads, ...writes, ...reads].map((call) => callsOf(call)), say([...tell, 'done .'].join(' . '))];
}
