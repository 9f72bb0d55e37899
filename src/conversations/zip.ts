/**
 * Texts in a zip that somebody else made: stored, deflated, or in Zstandard, as Inspect has written them since April 2026. Invariants: what is read
 * is what the directory at the zip's end names; no entry becomes longer than it says there, and what that may be is bounded; a text is the one that
 * was zipped (CRC-32).
 */
import { constants } from 'node:buffer';
import { open, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { crc32, inflateRawSync } from 'node:zlib';
import { Decompress } from 'fzstd';
import { type Entry, openPromise } from 'yauzl';

const MIB = 2 ** 20;
/** No text can be longer. */
const LARGEST_ENTRY = constants.MAX_STRING_LENGTH;
const LARGEST_SUM = 32 * 1024 * MIB;

/** Of a file, and not of a pipe, which can be read but once. */
export async function isZip(file: string): Promise<boolean> {
  if (!(await stat(file)).isFile()) return false;
  const handle = await open(file);
  try {
    const { buffer: head } = await handle.read(Buffer.alloc(4), 0, 4);
    return head.toString('latin1') === 'PK\u0003\u0004';
  } finally {
    await handle.close();
  }
}

/** In order of their names. Of two of one name the later counts: so logs are edited. */
export async function* textsInZip(file: string, isWanted: RegExp): AsyncGenerator<{ name: string; text: string }> {
  const zip = await openPromise(file, { autoClose: false });
  try {
    const wanted = new Map<string, Entry>();
    for await (const entry of zip.eachEntry()) if (isWanted.test(entry.fileName)) wanted.set(entry.fileName, entry);
    const sizes = [...wanted.values()].map(({ uncompressedSize }) => uncompressedSize);
    const sum = sizes.reduce((a, b) => a + b, 0);
    if (sum > LARGEST_SUM) throw new Error(`it would be ${sum} bytes, more than ${LARGEST_SUM}`);
    for (const [name, entry] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { compressedSize, uncompressedSize } = entry;
      if (Math.max(compressedSize, uncompressedSize) > LARGEST_ENTRY)
        throw new Error(`${name} would be ${uncompressedSize} bytes, more than ${LARGEST_ENTRY}`);
      const packed = await buffer(await zip.openReadStreamPromise(entry, { decodeFileData: false }));
      yield { name, text: unpacked(packed, entry).toString('utf8') };
    }
  } finally {
    zip.close();
  }
}

function unpacked(packed: Buffer, entry: Entry): Buffer {
  const { fileName, compressionMethod, uncompressedSize: size } = entry;
  if (entry.isEncrypted()) throw new Error(`${fileName} is encrypted`);
  const unpack = methods[compressionMethod];
  if (!unpack) throw new Error(`${fileName} is compressed by method ${compressionMethod}, which is not known here`);
  const body = unpack(packed, size);
  if (body.length !== size || crc32(body) !== entry.crc32) throw new Error(`${fileName} is damaged`);
  return body;
}

/** By number: stored, deflated, Zstandard. */
const methods: Record<number, (packed: Buffer, size: number) => Buffer> = {
  0: (packed) => packed,
  // At least one byte must be allowed, also of nothing.
  8: (packed, size) => inflateRawSync(packed, { maxOutputLength: size || 1 }),
  93: unpackedZstd,
};

/** Decoders need not take larger windows (RFC 8878); Inspect's are of 2 MiB. */
const LARGEST_WINDOW = 8 * MIB;
/** fzstd counts bits in 32 of them, within what it is given at once. */
const SLICE = MIB;

function unpackedZstd(packed: Buffer, size: number): Buffer {
  checkWindows(packed);
  const body = Buffer.alloc(size);
  let end = 0;
  const stream = new Decompress((chunk) => {
    if (end + chunk.length > size) throw new Error('an entry is longer than it says');
    body.set(chunk, end);
    end += chunk.length;
  });
  for (let at = 0; at < packed.length; at += SLICE)
    stream.push(packed.subarray(at, at + SLICE), at + SLICE >= packed.length);
  return body.subarray(0, end);
}

/** fzstd takes up to 2 GiB for the window of a frame, and moves all of it with each block: each frame's is looked at before. */
function checkWindows(packed: Buffer): void {
  for (let at = 0; at < packed.length;) {
    const magic = packed.readUInt32LE(at);
    if (magic >>> 4 === 0x184d2a5) {
      at += 8 + packed.readUInt32LE(at + 4);
      continue;
    }
    if (magic !== 0xfd2fb528) throw new Error('an entry is no Zstandard');
    const flags = packed.readUInt8(at + 4);
    const isSingle = (flags & 32) !== 0;
    const dictionaryBytes = [0, 1, 2, 4][flags & 3]!;
    const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][flags >>> 6]!;
    at += 5;
    const exponent = isSingle ? 0 : packed.readUInt8(at++);
    at += dictionaryBytes;
    const window = isSingle
      ? frameSize(packed, at, sizeBytes)
      : 2 ** (10 + (exponent >>> 3)) * (1 + (exponent & 7) / 8);
    if (window > LARGEST_WINDOW) throw new Error(`a Zstandard window is ${window} bytes, more than ${LARGEST_WINDOW}`);
    at = afterBlocks(packed, at + sizeBytes) + (flags & 4);
  }
}

const frameSize = (packed: Buffer, at: number, bytes: number): number =>
  bytes === 8 ? Number(packed.readBigUInt64LE(at)) : packed.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0);

function afterBlocks(packed: Buffer, start: number): number {
  for (let at = start; ;) {
    const header = packed.readUIntLE(at, 3);
    // Of a block of one byte, repeated, only that byte is there.
    at += 3 + ((header & 6) === 2 ? 1 : header >>> 3);
    if (header & 1) return at;
  }
}
