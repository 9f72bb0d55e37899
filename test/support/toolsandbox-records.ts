/**
 * Scenes in which records are found and one of them, or all, are meant: messages, reminders, contacts. Invariant: without a mistake a scene
 * reaches every milestone, word for word where ToolSandbox compares words.
 */
import { call, fieldOf, numberIn, say, type Scene } from './toolsandbox-script';
import { NOW, reminders, UPCOMING } from './toolsandbox-times';

export function searchMessage(o: { words: string; right: string; wrong: string[]; asked?: [string, string] }): Scene {
  return {
    occasions: ['choose_record'],
    script: ({ mistake, pick }) => ({
      agent: [
        ...(o.asked ? [say(o.asked[0])] : []),
        NOW,
        call('search_messages', (results) => ({ creation_timestamp_upperbound: numberIn(results) })),
        say(`Your ${o.words} says '${mistake ? pick(o.wrong) : o.right}'.`),
      ],
      user: o.asked ? [o.asked[1]] : [],
    }),
  };
}
export const latest = {
  words: 'most recent message',
  right: 'Good, keep me posted',
  wrong: ['Things are proceeding as expected', "How's it going"],
};
export const oldest = { right: 'Hey kid, you want some GPU?', wrong: ['No leave me alone', "How's it going"] };
export const WHICH = 'Which message are you looking for?';

export function searchReminder(o: { words: string; right: string; upcoming?: boolean }): Scene {
  const wrong = [UPCOMING, ...Object.values(reminders)].filter((one) => one !== o.right);
  return {
    occasions: ['choose_record'],
    script: ({ mistake, pick }) => ({
      agent: [
        NOW,
        call('search_reminder', (results) =>
          o.upcoming && !mistake
            ? { reminder_timestamp_lowerbound: numberIn(results) }
            : { creation_timestamp_upperbound: numberIn(results) },
        ),
        say(`Your ${o.words} says '${mistake ? pick(wrong) : o.right}'.`),
      ],
      user: [],
    }),
  };
}

export function removeContact(asked?: [string, string]): Scene {
  const phone = '+12453344098';
  return {
    occasions: [],
    script: () => ({
      agent: [
        ...(asked ? [say(asked[0])] : []),
        call('search_contacts', { phone_number: phone }),
        call('remove_contact', (results) => ({ person_id: fieldOf(results, phone, 'person_id') })),
        say(`Phone number ${phone} has been removed from your contact`),
      ],
      user: asked ? [asked[1]] : [],
    }),
  };
}

const FRIENDS = ['Fredrik Thordendal', 'John Petrucci'];

/** Friends become enemies. `asked`: the user wants to know who they are first. */
export function changeRelationship({ asked = false }): Scene {
  return {
    occasions: ['cover_all'],
    script: ({ mistake }) => ({
      agent: [
        call('search_contacts', { relationship: 'friend' }),
        ...(asked ? [say(`Your friends are ${FRIENDS.join(' and ')}.`)] : []),
        ...(mistake ? FRIENDS.slice(0, 1) : FRIENDS).map((name) =>
          call('modify_contact', (results) => ({
            person_id: fieldOf(results, name, 'person_id'),
            relationship: 'enemy',
          })),
        ),
        say(asked ? `${FRIENDS.join(' and ')} are now your enemies` : 'All your friends are now your enemies'),
      ],
      user: asked ? ['Make them my enemies.'] : [],
    }),
  };
}
