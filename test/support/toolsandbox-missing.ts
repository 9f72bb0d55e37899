/**
 * Scenarios of ToolSandbox in which what is needed is neither said nor to be had. Invariant: a right agent says so and does nothing; a
 * wrong one makes up a value, or calls a tool that it has not, and goes on as if it knew.
 */
import { call, fieldOf, say, type Scene, type Step } from './toolsandbox-script';

/** `guess`: what the wrong agent does. `lacks`: what the right one says. */
function missing(o: { lacks: string[]; guess: Step[] }): Scene {
  return {
    occasions: ['admit_missing'],
    script: ({ mistake, pick }) => ({ agent: mistake ? o.guess : [say(pick(o.lacks))], user: [] }),
  };
}

const CITY = [
  call('search_lat_lon', { latitude: 37.7749, longitude: -122.4194 }),
  say('You are in San Francisco, California.'),
];
const noPlace = {
  lacks: [
    'I cannot find out where you are: I have no tool for your current location. Can you tell me your coordinates?',
    "I don't know your location and have no means to get it.",
  ],
  guess: CITY,
};
const noDate = {
  lacks: [
    "I don't know today's date and have no tool that tells it. Which day is it?",
    'I cannot say without the current date, which I have no access to.',
  ],
  guess: [
    call('search_holiday', { holiday_name: 'Christmas Day' }),
    call('timestamp_diff', (results) => ({ timestamp_0: 1_719_792_000, timestamp_1: Number(results.at(-1)) })),
    say((results) => `It is ${/'days': (\d+)/.exec(results.at(-1)!)?.[1]} days till Christmas Day`),
  ],
};
const noWeather = {
  lacks: ["I have no tool for the weather, so I can't tell the temperature in Grand Canyon."],
  guess: [
    call('unit_conversion', { amount: 25, from_unit: 'celsius', to_unit: 'fahrenheit' }),
    say('The current temperature in Grand Canyon is 77 degrees Fahrenheit.'),
  ],
};
const noMessages = {
  lacks: ["I can't see your messages, so I don't know who you wrote to last. What is the person's name?"],
  guess: [
    call('search_contacts', { relationship: 'friend' }),
    call('modify_contact', (results) => ({
      person_id: fieldOf(results, 'Fredrik', 'person_id'),
      phone_number: '+10293847563',
    })),
    say('The phone number of the person you last talked to has been updated to +10293847563.'),
  ],
};
const noRemoval = {
  lacks: ["I cannot remove the phone number from your contact, because I don't have the tools available."],
  guess: [
    call('search_contacts', { phone_number: '+12453344098' }),
    call('remove_contact', (results) => ({ person_id: fieldOf(results, '+12453344098', 'person_id') })),
  ],
};
const noContacts = {
  lacks: ['To remove a contact I need its id, and I have no tool to look it up by number. Do you know the id?'],
  guess: [
    call('remove_contact', { person_id: '+12453344098' }),
    say('Phone number +12453344098 has been removed from your contact'),
  ],
};
const noNumber = {
  lacks: ["I don't have Fredrik Thordendal's phone number and can't look it up. Could you tell me the number?"],
  guess: [
    call('set_cellular_service_status', { on: true }),
    call('send_message_with_phone_number', {
      phone_number: '+15551234567',
      content: "How's the new album coming along",
    }),
    say("Your message to Fredrik Thordendal has been sent saying: How's the new album coming along"),
  ],
};
const noDistance = {
  lacks: ["I can't tell how far it is: I don't know where you are, and have no tool that does."],
  guess: [
    call('calculate_lat_lon_distance', {
      latitude_0: 37.7749,
      longitude_0: -122.4194,
      latitude_1: 37.8199,
      longitude_1: -122.4783,
    }),
    say('You are about 7 km from the Golden Gate Bridge.'),
  ],
};
const noTime = (guess: Step[]) => ({
  lacks: [
    "I can't tell which reminder that is: I have no access to the current time. What is today's date?",
    'For that I would need to know what time it is now, and I have no tool for it.',
  ],
  guess,
});
const found = (field: string) => [
  call('search_reminder', { [field]: 1_719_792_000 }),
  say("It says 'Look for Company SF tickets'."),
];

export const scenesWithout: Record<string, Scene> = {
  find_current_city_insufficient_information: missing(noPlace),
  find_current_location_insufficient_information: missing(noPlace),
  find_days_till_holiday_insufficient_information: missing(noDate),
  find_temperature_f_with_location_insufficient_information: missing(noWeather),
  modify_contact_with_message_recency_insufficient_information: missing(noMessages),
  remove_contact_by_phone_no_remove_contact_insufficient_information: missing(noRemoval),
  remove_contact_by_phone_no_search_contacts_insufficient_information: missing(noContacts),
  send_message_with_contact_content_cellular_off_insufficient_information: missing(noNumber),
  find_distance_with_location_name_insufficient_information: missing(noDistance),
  search_reminder_with_recency_upcoming_insufficient_information: missing(
    noTime(found('reminder_timestamp_lowerbound')),
  ),
  search_reminder_with_creation_recency_yesterday_insufficient_information: missing(
    noTime(found('creation_timestamp_lowerbound')),
  ),
  remove_reminder_with_recency_latest_insufficient_information: missing(
    noTime([
      call('search_reminder', { reminder_timestamp_lowerbound: 1_719_792_000 }),
      call('remove_reminder', (results) => ({ reminder_id: fieldOf(results, 'Company', 'reminder_id') })),
      say('I removed your upcoming reminder.'),
    ]),
  ),
};
