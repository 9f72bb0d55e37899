/**
 * What the tool schemas tell about calls: which tools write, which arguments identify records, and which identifiers can be looked up.
 * Invariant: what the schemas leave open counts as possible, so that nobody is blamed for it.
 */
import type { ToolSchema } from '../../domain/messages';
import { recordReader, type ReadRecords } from './records';
import { argumentFields, isIdentifier, kindOf, outputFields } from './schemas';

/** An argument that identifies a record or an account, and what kind of thing it identifies. */
export interface IdentifierArgument {
  argument: string;
  kind: string;
  required: boolean;
}

export interface ToolKnowledge {
  isWrite(tool: string): boolean;
  identifierArguments(tool: string): readonly IdentifierArgument[];
  /** Kinds of identifiers that `text` holds or that look-ups give, starting from it. */
  reachableKinds(text: string): ReadonlySet<string>;
  /** True if `text` holds an identifier of this kind, or if the schemas don't tell what one looks like. */
  holdsKind(text: string, kind: string): boolean;
  records: ReadRecords;
}

export function toolKnowledge(tools: readonly ToolSchema[]): ToolKnowledge {
  const writes = new Set(tools.filter((tool) => !tool.annotations?.readOnlyHint).map((tool) => tool.name));
  const identifiers = new Map<string, IdentifierArgument[]>();
  const patterns = new Map<string, RegExp>();
  for (const tool of tools) {
    const fields = argumentFields(tool).filter(isIdentifier);
    identifiers.set(
      tool.name,
      fields.map((field) => ({
        argument: field[0],
        kind: kindOf(field),
        required: tool.parameters.required?.includes(field[0]) ?? false,
      })),
    );
    for (const [, { pattern }] of fields) if (pattern !== undefined) patterns.set(pattern, new RegExp(pattern));
  }
  const identifierArguments = (tool: string) => identifiers.get(tool) ?? [];
  const kinds = new Set([...identifiers.values()].flat().map(({ kind }) => kind));
  const lookUps = tools
    .filter((tool) => !writes.has(tool.name))
    .map((tool) => ({
      needs: identifierArguments(tool.name).flatMap(({ kind, required }) => (required ? [kind] : [])),
      // Without an output schema a look-up may show anything.
      shows: tool.outputSchema
        ? outputFields(tool)
            .map(kindOf)
            .filter((kind) => kinds.has(kind))
        : [...kinds],
    }));

  const holdsKind = (text: string, kind: string) => {
    const pattern = patterns.get(kind);
    const tokens = text.split(/[\s,;:!?"'()]+/).map((token) => token.replace(/\.$/, ''));
    return pattern === undefined || tokens.some((token) => pattern.test(token));
  };

  const reachableKinds = (text: string) => {
    const reached = new Set([...kinds].filter((kind) => holdsKind(text, kind)));
    for (let before = -1; before !== reached.size;) {
      before = reached.size;
      for (const { needs, shows } of lookUps) {
        if (needs.every((kind) => reached.has(kind))) for (const kind of shows) reached.add(kind);
      }
    }
    return reached;
  };

  return {
    isWrite: (tool) => writes.has(tool),
    identifierArguments,
    reachableKinds,
    holdsKind,
    records: recordReader(tools),
  };
}
