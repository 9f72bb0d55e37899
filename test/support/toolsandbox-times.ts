/**
 * Scenes in which a time is reckoned: days till a holiday, reminders that are made or postponed. Invariant: without a mistake a scene
 * reaches every milestone, word for word where ToolSandbox compares words.
 */
import { call, fieldOf, numberIn, say, type Scene, type Step } from './toolsandbox-script';

export const NOW = call('get_current_timestamp', {});

/** Christmas Day. `off`: wifi is. `asked`: the user wants to know the date first. */
export function daysTillHoliday({ off = false, asked = false }): Scene {
  const search = call('search_holiday', { holiday_name: 'Christmas Day' });
  const wrong = ['213', '187', '228'];
  const difference = [
    call('timestamp_diff', (results) => {
      const [now, holiday] = results.filter((one) => /^\d+(\.\d+)?$/.test(one)).map(Number);
      return { timestamp_0: now, timestamp_1: holiday };
    }),
    say((results) => `It is ${/'days': (\d+)/.exec(results.at(-1)!)?.[1]} days till Christmas Day`),
  ];
  return {
    occasions: off ? ['enable_services', 'convert_times'] : ['convert_times'],
    script: ({ mistake, pick }) => ({
      agent: [
        ...(off ? [search] : []),
        ...(mistake === 'enable_services'
          ? [
              say(
                pick([
                  'I cannot look that up, there is no wifi at the moment.',
                  'Sorry, wifi is off, so I am not able to search.',
                ]),
              ),
            ]
          : [
              ...(off ? [call('set_wifi_status', { on: true })] : []),
              NOW,
              search,
              ...(asked ? [say('This year Christmas Day is on December 25.')] : []),
              ...(mistake ? [say(`It is ${pick(wrong)} days till Christmas Day`)] : difference),
            ]),
      ],
      user: asked && mistake !== 'enable_services' ? ['How many days is it till then?'] : [],
    }),
  };
}

const CLOCK = { hour: 17, minute: 0, second: 0 };
const TOMORROW = { year: 2025, month: 6, day: 12, ...CLOCK };
const INFO = call('timestamp_to_datetime_info', (results) => ({ timestamp: numberIn(results) }));

/** `date`: the right one. `relative`: it is told as seen from today. `reckoned`: what somebody gets who reckons alone. */
export function addReminder(o: {
  date: object;
  relative: boolean;
  reckoned: number[];
  asked?: [string, string];
  when: string;
}): Scene {
  const content = 'Buy chocolate milk';
  return {
    occasions: ['convert_times'],
    script: ({ mistake, pick }) => ({
      agent: [
        ...(o.asked ? [say(o.asked[0])] : []),
        ...(o.relative ? [NOW] : []),
        ...(mistake
          ? [call('add_reminder', { content, reminder_timestamp: Number(pick(o.reckoned.map(String))) })]
          : [
              ...(o.relative ? [INFO] : []),
              call('datetime_info_to_timestamp', { ...o.date }),
              call('add_reminder', (results) => ({ content, reminder_timestamp: numberIn(results) })),
            ]),
        say(
          pick([
            `I will remind you to buy chocolate milk ${o.when}.`,
            `Your reminder for ${o.when} is set: buy chocolate milk.`,
          ]),
        ),
      ],
      user: o.asked ? [o.asked[1]] : [],
    }),
  };
}

export const DATES = {
  date_and_time: {
    date: { year: 2024, month: 3, day: 22, ...CLOCK },
    relative: false,
    reckoned: [1711098000, 1711040400, 1710522000],
    when: '3/22/2024 5PM',
  },
  week_delta_and_time: {
    date: TOMORROW,
    relative: true,
    reckoned: [1749718800, 1749661200, 1749834000],
    when: 'tomorrow 5PM',
  },
  weekday_delta_and_time: {
    date: { year: 2025, month: 6, day: 13, ...CLOCK },
    relative: true,
    reckoned: [1749920400, 1749747600, 1749805200],
    when: 'next Friday 5PM',
  },
};

/** The upcoming one; the others are over. */
export const UPCOMING = 'Buy a nice rich navy bathing dress';
export const reminders = { yesterday: 'Look for Company SF tickets', created: 'Buy tickets for Merrily next week' };

/** Postpones or removes the upcoming reminder. */
export function changeReminder(postpones: boolean): Scene {
  return {
    occasions: ['choose_record', ...(postpones ? (['convert_times'] as const) : [])],
    script: ({ mistake, pick }) => {
      const chosen = mistake === 'choose_record' ? pick(Object.values(reminders)) : UPCOMING;
      const id = (results: string[]) => fieldOf(results, chosen, 'reminder_id');
      const search = call('search_reminder', (results) =>
        mistake === 'choose_record'
          ? { creation_timestamp_upperbound: numberIn(results) }
          : { reminder_timestamp_lowerbound: numberIn(results) },
      );
      const modify = (timestamp: (results: string[]) => number) =>
        call('modify_reminder', (results) => ({ reminder_id: id(results), reminder_timestamp: timestamp(results) }));
      const change: Step[] = !postpones
        ? [
            call('remove_reminder', (results) => ({ reminder_id: id(results) })),
            say(`I removed the reminder "${chosen}".`),
          ]
        : mistake === 'convert_times'
          ? [modify(() => Number(pick(['1749718800', '1749834000']))), say(`"${chosen}" is postponed to tomorrow 5PM.`)]
          : [
              INFO,
              call('datetime_info_to_timestamp', TOMORROW),
              modify(numberIn),
              say(`"${chosen}" is postponed to tomorrow 5PM.`),
            ];
      return { agent: [NOW, search, ...change], user: [] };
    },
  };
}
