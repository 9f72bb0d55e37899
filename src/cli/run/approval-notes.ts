/** Says how to approve what waits. Invariant: once for each thing: the tree goes on showing that it waits. */
import type { ProgressOutput } from '../watch/progress-output';
import type { Snapshot } from '../watch/snapshot';

export function approvalNotes(output: Pick<ProgressOutput, 'note'>): (snapshot: Snapshot) => void {
  const told = new Set<string>();
  return ({ name, progress, children }) => {
    const waits = [progress?.waiting, ...children.map((child) => child.progress?.waiting)].flatMap((one) => one ?? []);
    for (const { what, of, names } of waits) {
      if (told.has(of)) continue;
      told.add(of);
      const [thing, which] =
        what === 'capabilities' ? [names.join(', '), ''] : [`the environment of ${names[0]}`, ` ${names[0]}`];
      const decide = `\`campaign approve ${name}${which}\` or \`campaign reject ${name}${which || ' NAME...'} --reason TEXT\``;
      output.note(
        'campaign',
        `${thing}: waits for approval. In another terminal: \`campaign approvals ${name}\`, then ${decide}. Ctrl-C loses nothing: the same command waits on`,
      );
    }
  };
}
