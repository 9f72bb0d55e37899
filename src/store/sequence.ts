/** Numbered texts below one path of a store. Each number is created once: a writer that loses one takes the winner's text and continues at the next. */
import { forEachBounded } from '../domain/concurrency';
import { sha256 } from './hash';
import type { RecordFiles } from './store';

const CONCURRENCY = 16;
const CHECKSUM_LENGTH = 16;

const checksum = (text: string): string => sha256(text).slice(0, CHECKSUM_LENGTH);

function parseBody(body = ''): string | undefined {
  const text = body.slice(CHECKSUM_LENGTH + 1);
  return body === `${checksum(text)}\n${text}` ? text : undefined;
}

export class Sequence {
  private next = 0;

  constructor(
    private readonly files: RecordFiles,
    private readonly path: string,
  ) {}

  /** Returns the texts that were written since the last call, in order. Damaged ones are left out; their numbers stay taken. */
  async read(): Promise<string[]> {
    const listed = await this.files.list(`${this.path}/`);
    const numbers = listed.map(({ path }) => Number(path.slice(this.path.length + 1))).filter((n) => n >= this.next);
    const texts = new Map<number, string | undefined>();
    const work = async (number: number) => void texts.set(number, await this.readText(number));
    await forEachBounded({ items: numbers, concurrency: CONCURRENCY, work });
    this.next = (numbers.at(-1) ?? this.next - 1) + 1;
    return numbers.flatMap((number) => texts.get(number) ?? []);
  }

  /** Writes the text under the next number. `isOwn` is false where another writer has that number, with its text. One call at a time. */
  async add(text: string): Promise<{ isOwn: true } | { isOwn: false; text: string | undefined }> {
    const number = this.next;
    const isOwn = await this.files.create(this.pathOf(number), `${checksum(text)}\n${text}`);
    const there = isOwn ? text : await this.readText(number);
    this.next = number + 1;
    return isOwn ? { isOwn } : { isOwn, text: there };
  }

  private async readText(number: number): Promise<string | undefined> {
    return parseBody(await this.files.read(this.pathOf(number)));
  }

  private pathOf(number: number): string {
    return `${this.path}/${String(number).padStart(10, '0')}`;
  }
}
