/** What a child workflow shows of itself: the progress query, current details and search attributes; and its pause gate. */
import { defineQuery, setCurrentDetails, setHandler } from '@temporalio/workflow';
import { queryNames, type ChildProgress } from './messages';
import { PauseGate } from './pause';

const childProgressQuery = defineQuery<ChildProgress>(queryNames.progress);

export class ChildStatus {
  private readonly progress: ChildProgress;
  readonly gate: PauseGate;

  constructor(name: string) {
    this.progress = { name, phase: 'synthesize', round: 0, detail: '', paused: false };
    setHandler(childProgressQuery, () => this.progress);
    this.gate = new PauseGate((paused) => {
      this.progress.paused = paused;
      this.show();
    });
  }

  set(phase: ChildProgress['phase'], detail: string, round = this.progress.round): void {
    Object.assign(this.progress, { phase, detail, round });
    this.show();
  }

  private show(): void {
    const { name, phase, detail, paused } = this.progress;
    setCurrentDetails(`**${name}**: ${paused ? 'paused, ' : ''}${phase}${detail ? ` (${detail})` : ''}`);
  }
}
