/** The openai client never takes its listener off a signal: over a batch of thousands of requests that would pile up. */
export async function withOwnSignal<Answer>(
  signal: AbortSignal | undefined,
  work: (own: AbortSignal) => PromiseLike<Answer>,
): Promise<Answer> {
  const own = new AbortController();
  const abort = () => own.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  try {
    return await work(own.signal);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
