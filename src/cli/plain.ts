/** Text from elsewhere (a program's last words, a model's, a server's), as a terminal may show it: nothing in it moves the cursor or sets anything. */
import { stripVTControlCharacters } from 'node:util';

/** Without escape sequences and control characters; newlines stay, a tab is a space. */
export const plain = (text: string): string =>
  stripVTControlCharacters(text)
    .replaceAll('\t', ' ')
    .replace(/[^\P{Cc}\n]/gu, '');
