import { openingOf, type Message } from '../../src/domain/messages';

const said = (...roles: ('system' | 'user' | 'assistant')[]): Message[] =>
  roles.map((role, n) => ({ role, content: `${n}` }));

test.each([
  ['ends before the first answer', said('system', 'user', 'assistant', 'user', 'assistant'), 2],
  ['holds a greeting', said('assistant', 'user', 'assistant', 'user'), 2],
  ['holds all that the user said first', said('system', 'user', 'user', 'assistant'), 3],
  ['is everything where nothing was answered', said('assistant', 'user'), 2],
])('the opening %s', (_, messages, length) => {
  expect(openingOf(messages)).toEqual(messages.slice(0, length));
});
