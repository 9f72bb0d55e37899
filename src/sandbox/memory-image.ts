/** The WebAssembly memory of a loaded module, to be copied back. Invariant: restore() leaves all that QuickJS keeps as it was when taken. */

export interface Memory {
  buffer: ArrayBuffer;
}

interface Segment {
  offset: number;
  bytes: Uint8Array;
}

/**
 * Left out are the first run of zeros that is longer, which is the C stack (it lies below the heap, and holds nothing between calls), and the
 * end, which the allocator has not given out. Other zeros are a module's: a buffer that it has not filled.
 */
const GAP = 1_048_576;
const BLOCK = 4_096;

/** Takes the memory in use, from its first byte; the returned function copies it back. */
export function memoryImage({ buffer }: Memory): () => void {
  const all = Buffer.from(buffer);
  const zeros = Buffer.alloc(BLOCK);
  const segments: Segment[] = [];
  let [start, end] = [0, BLOCK];
  const close = (): void => void segments.push({ offset: start, bytes: new Uint8Array(buffer).slice(start, end) });
  for (let at = BLOCK; at < all.length; at += BLOCK) {
    if (all.compare(zeros, 0, BLOCK, at, at + BLOCK) === 0) continue;
    if (segments.length === 0 && at - end >= GAP) {
      close();
      start = at;
    }
    end = at + BLOCK;
  }
  close();
  const memory = new Uint8Array(buffer);
  return () => {
    for (const { offset, bytes } of segments) memory.set(bytes, offset);
  };
}
