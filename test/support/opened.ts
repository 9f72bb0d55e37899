/** Closes after each test the resources that it opened. */
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Registers what is to be done after each test, in reverse order. */
export const atEnd = (end: () => unknown): unknown => ends.push(end);

export function closedAfterwards<Opened extends { close(): unknown }>(one: Opened): Opened {
  atEnd(() => one.close());
  return one;
}
