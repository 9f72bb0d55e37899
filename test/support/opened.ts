/** What a test opens, closed after it. */
const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
});

export function closedAfterwards<Opened extends { close(): Promise<unknown> }>(one: Opened): Opened {
  opened.push(one);
  return one;
}
