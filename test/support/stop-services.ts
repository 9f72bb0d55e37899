/** Called by Jest after the tests. */
export default async function stop(): Promise<void> {
  await (globalThis as unknown as { stopServices: () => Promise<void> }).stopServices();
}
