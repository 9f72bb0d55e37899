/**
 * Scenarios of ToolSandbox in which everything is there that is needed, by their names, as the scripted agent plays them. Invariant:
 * without a mistake a scene reaches every milestone, word for word where ToolSandbox compares words.
 */
import {
  changeRelationship,
  latest,
  oldest,
  removeContact,
  searchMessage,
  searchReminder,
  WHICH,
} from './toolsandbox-records';
import { call, fieldOf, say, type Scene } from './toolsandbox-script';
import { addReminder, changeReminder, DATES, daysTillHoliday, reminders, UPCOMING } from './toolsandbox-times';

function turnOn(tool: string, service: string): Scene {
  const on = call(tool, { on: true });
  return {
    occasions: ['enable_services'],
    script: ({ mistake, pick }) => ({
      agent: mistake
        ? [
            on,
            say(
              pick([
                `I'm sorry, ${service.toLowerCase()} cannot be turned on in low battery mode.`,
                `That did not work: the phone is in low battery mode, so ${service.toLowerCase()} has to stay off.`,
              ]),
            ),
          ]
        : [on, call('set_low_battery_mode_status', { on: false }), on, say(`${service} has been turned on.`)],
      user: [],
    }),
  };
}

/** `asked`: the agent's question before, and the answer. */
function sendMessage(asked?: [string, string]): Scene {
  const [name, content] = ['Fredrik Thordendal', "How's the new album coming along"];
  const send = call('send_message_with_phone_number', (results) => ({
    phone_number: fieldOf(results, name, 'phone_number'),
    content,
  }));
  return {
    occasions: ['enable_services'],
    script: ({ mistake, pick }) => ({
      agent: [
        ...(asked ? [say(asked[0])] : []),
        call('search_contacts', { name }),
        send,
        ...(mistake
          ? [
              say(
                pick([
                  'I could not send your message: cellular service is not enabled. Please try again later.',
                  `The message to ${name} was not sent because there is no cellular service.`,
                ]),
              ),
            ]
          : [
              call('set_cellular_service_status', { on: true }),
              send,
              say(`Your message to ${name} has been sent saying: ${content}`),
            ]),
      ],
      user: asked ? [asked[1]] : [],
    }),
  };
}

const ofDates = Object.entries(DATES).flatMap(([name, one]): [string, Scene][] => [
  [`add_reminder_content_and_${name}`, addReminder(one)],
  [`add_reminder_content_and_${name}_alt`, addReminder(one)],
  [
    `add_reminder_content_and_${name}_multiple_user_turn`,
    addReminder({ ...one, asked: ['When should I remind you?', `${one.when}.`] }),
  ],
]);

export const scenes: Record<string, Scene> = {
  turn_on_wifi_low_battery_mode: turnOn('set_wifi_status', 'Wifi'),
  turn_on_wifi_low_battery_mode_implicit: turnOn('set_wifi_status', 'Wifi'),
  turn_on_cellular_low_battery_mode: turnOn('set_cellular_service_status', 'Cellular service'),
  turn_on_cellular_low_battery_mode_implicit: turnOn('set_cellular_service_status', 'Cellular service'),
  turn_on_location_low_battery_mode: turnOn('set_location_service_status', 'Location service'),
  turn_on_location_low_battery_mode_implicit: turnOn('set_location_service_status', 'Location service'),
  send_message_with_contact_content_cellular_off: sendMessage(),
  send_message_with_contact_content_cellular_off_alt: sendMessage(),
  send_message_with_contact_content_cellular_off_multiple_user_turn: sendMessage([
    'Whom should I write to, and what should the message say?',
    "Fredrik Thordendal. Ask how's the new album coming along.",
  ]),
  find_days_till_holiday: daysTillHoliday({}),
  find_days_till_holiday_alt: daysTillHoliday({}),
  find_days_till_holiday_multiple_user_turn: daysTillHoliday({ asked: true }),
  find_days_till_holiday_wifi_off: daysTillHoliday({ off: true }),
  find_days_till_holiday_wifi_off_alt: daysTillHoliday({ off: true }),
  ...Object.fromEntries(ofDates),
  modify_reminder_with_recency_latest: changeReminder(true),
  modify_reminder_with_recency_latest_alt: changeReminder(true),
  remove_reminder_with_recency_latest: changeReminder(false),
  remove_reminder_with_recency_latest_alt: changeReminder(false),
  search_message_with_recency_latest: searchMessage(latest),
  search_message_with_recency_oldest: searchMessage({ ...oldest, words: 'oldest message' }),
  search_message_with_recency_oldest_alt: searchMessage({ ...oldest, words: 'first ever text' }),
  search_message_with_recency_latest_multiple_user_turn: searchMessage({
    ...latest,
    asked: [WHICH, 'The most recent one.'],
  }),
  search_reminder_with_recency_upcoming: searchReminder({
    words: 'upcoming reminder',
    right: UPCOMING,
    upcoming: true,
  }),
  search_reminder_with_recency_yesterday: searchReminder({
    words: 'reminder from yesterday',
    right: reminders.yesterday,
  }),
  search_reminder_with_creation_recency_yesterday: searchReminder({
    words: 'reminder created yesterday',
    right: reminders.created,
  }),
  remove_contact_by_phone: removeContact(),
  remove_contact_by_phone_multiple_user_turn: removeContact([
    'Who should be deleted?',
    'The one with the number +12453344098.',
  ]),
  update_contact_relationship_with_relationship: changeRelationship({}),
  update_contact_relationship_with_relationship_multiple_user_turn: changeRelationship({ asked: true }),
};
