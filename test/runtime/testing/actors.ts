/** Small actors for the tests of the simulator, each with bugs that can be planted. */
import { Effect } from "effect"
import { become, type Behavior, type BehaviorTable, refuse, stay } from "../../../runtime/index.ts"
import type { SimulatedHost } from "../../../runtime/testing/index.ts"

export interface Account {
  readonly _tag: "Open"
  readonly cents: number
  /** The keys of the last deposits: one that is repeated counts once. */
  readonly keys: ReadonlyArray<string>
}

export type AccountMessage =
  | { readonly _tag: "Deposit"; readonly cents: number; readonly key: string }
  | { readonly _tag: "Withdraw"; readonly cents: number }
  | { readonly _tag: "Read" }

const keysMax = 50

const accountTable: BehaviorTable<Account, AccountMessage, number> = {
  Open: {
    Deposit: (state, { cents, key }) => {
      if (state.keys.includes(key)) return stay<Account>().reply(state.cents)
      const total = state.cents + cents
      return become<Account>({
        _tag: "Open",
        cents: total,
        keys: [...state.keys, key].slice(-keysMax)
      }).reply(total)
    },
    Withdraw: (state, { cents }) =>
      cents > state.cents
        ? refuse("TooLittle")
        : become<Account>({ ...state, cents: state.cents - cents }).reply(state.cents - cents),
    Read: ({ cents }) => stay<Account>().reply(cents)
  }
}

export const account: Behavior<Account, AccountMessage, number, never> = {
  kind: "account",
  initial: { _tag: "Open", cents: 0, keys: [] },
  table: accountTable,
  encode: (state) => JSON.stringify(state),
  decode: (text) => JSON.parse(text) as Account, // written by encode
  decodeMessage: (input) => input as AccountMessage, // only these tests send messages
  timerMessage: { _tag: "Read" },
  perform: () => Effect.void
}

/** Its cells keep the balance in the process, beside the state. */
export const accountWithMemory = (): typeof account => {
  const cents = new Map<string, number>()
  return {
    ...account,
    table: {
      Open: {
        ...accountTable.Open,
        Deposit: (_, message, { self }) => {
          const total = (cents.get(self.id) ?? 0) + message.cents
          cents.set(self.id, total)
          return become<Account>({ _tag: "Open", cents: total, keys: [] }).reply(total)
        }
      }
    }
  }
}

/** Forgets the keys whenever it is stored. */
export const accountWithoutKeys: typeof account = {
  ...account,
  encode: (state) => JSON.stringify({ ...state, keys: [] })
}

/** Withdraws more than it has. */
export const accountInDebt: typeof account = {
  ...account,
  table: {
    Open: {
      ...accountTable.Open,
      Withdraw: (state, { cents }) =>
        become<Account>({ ...state, cents: state.cents - cents }).reply(state.cents - cents)
    }
  }
}

export type Reminder =
  | { readonly _tag: "Idle" }
  | { readonly _tag: "Waiting"; readonly text: string; readonly atMs: number }

export type ReminderMessage =
  | { readonly _tag: "Remind"; readonly text: string; readonly inMs: number }
  | { readonly _tag: "Due" }
  | { readonly _tag: "Sent" }

interface Send {
  readonly _tag: "Send"
  readonly text: string
}

/** How long an attempt to send may take before it is repeated, ms. */
export const attemptMs = 20_000

const reminderTable: BehaviorTable<Reminder, ReminderMessage, string, Send> = {
  Idle: {
    Remind: (_, { inMs, text }, { nowMs }) =>
      become<Reminder>({ _tag: "Waiting", text, atMs: nowMs + inMs })
        .setTimer(nowMs + inMs).reply("later"),
    Due: () => stay<Reminder>(),
    Sent: () => stay<Reminder>()
  },
  Waiting: {
    Remind: () => refuse("Busy"),
    Due: ({ atMs, text }, _, { nowMs }) =>
      nowMs < atMs
        ? stay<Reminder>().setTimer(atMs)
        : stay<Reminder>().setTimer(nowMs + attemptMs).perform<Send>({ _tag: "Send", text }),
    Sent: () => become<Reminder>({ _tag: "Idle" }).setTimer(null)
  }
}

const reminderOn = (
  send: (text: string) => Effect.Effect<ReminderMessage | void>
): Behavior<Reminder, ReminderMessage, string, Send> => ({
  kind: "reminder",
  initial: { _tag: "Idle" },
  table: reminderTable,
  encode: (state) => JSON.stringify(state),
  decode: (text) => JSON.parse(text) as Reminder, // written by encode
  decodeMessage: (input) => input as ReminderMessage, // only these tests send messages
  timerMessage: { _tag: "Due" },
  perform: ({ text }) => send(text)
})

/** The service that the reminders call. */
export interface Mails {
  readonly sent: Array<string>
}

/** Sends a text by another service, as often as it takes. */
export const reminder = ({ outside }: SimulatedHost, { sent }: Mails) =>
  reminderOn((text) =>
    Effect.promise(() =>
      outside("mail", () => void sent.push(text)).then(
        (): ReminderMessage => ({ _tag: "Sent" }),
        () => undefined
      )
    )
  )

/** Sends by an effect that takes this long, ms. */
export const slowReminder = (sent: Array<string>, sendMs: number) =>
  reminderOn((text) =>
    Effect.map(Effect.sleep(sendMs), (): ReminderMessage => {
      sent.push(text)
      return { _tag: "Sent" }
    })
  )

/** Forgets to repeat an attempt that has failed. */
export const forgetfulReminder = (host: SimulatedHost, mails: Mails) => {
  const real = reminder(host, mails)
  return {
    ...real,
    table: {
      ...real.table,
      Waiting: {
        ...real.table.Waiting,
        Due: ({ text }: Extract<Reminder, { readonly _tag: "Waiting" }>) =>
          stay<Reminder>().perform<Send>({ _tag: "Send", text })
      }
    }
  }
}
