/** A newsletter, which many inboxes receive: each once, in batches. */
import { append, become, defineActor, refuse, Schema, stay } from "../../../../runtime/main.ts"

const batchMax = 50
const retryAfterMs = 10_000

export const inbox = defineActor("inbox", {
  state: { Open: { count: Schema.Int } },
  messages: { Deliver: { key: Schema.String, text: Schema.String }, Count: {} },
  log: Schema.Struct({ key: Schema.String, text: Schema.String }),
  recall: { items: 100, keyOf: ({ key }) => key },
  initial: { _tag: "Open", count: 0 },
  table: {
    Open: {
      Deliver: ({ count }, { key, text }, { findDuplicate }) =>
        findDuplicate(key) === undefined
          ? append({ key, text }).become({ _tag: "Open", count: count + 1 }).reply("kept")
          : stay().reply("kept"),
      Count: ({ count }) => stay().reply(count)
    }
  }
})

const letter = { text: Schema.String, to: Schema.Array(Schema.String) }

interface Sending {
  readonly _tag: "Sending"
  readonly text: string
  readonly to: ReadonlyArray<string>
  /** So many of `to` have it. */
  readonly sent: number
}

/** Goes on with the next batch. */
const send = (state: Sending) => {
  const to = state.to.slice(state.sent, state.sent + batchMax)
  const upTo = state.sent + to.length
  const action = { _tag: "Deliver", text: state.text, to, upTo } as const
  return become(state).attempt(action, retryAfterMs)
}

export const newsletter = defineActor("newsletter", {
  state: { Draft: {}, Sending: { ...letter, sent: Schema.Int }, Sent: {} },
  messages: { Send: letter, Look: {}, Retry: {}, Delivered: { upTo: Schema.Int } },
  actions: { Deliver: { ...letter, upTo: Schema.Int } },
  internal: ["Delivered"],
  timer: "Retry",
  initial: { _tag: "Draft" },
  table: {
    Draft: {
      Send: (_, { text, to }) => send({ _tag: "Sending", text, to, sent: 0 }).reply("begun"),
      Look: () => stay().reply(0),
      Retry: () => stay(),
      Delivered: () => stay()
    },
    Sending: {
      Send: () => refuse("AlreadySending"),
      Look: ({ sent }) => stay().reply(sent),
      Retry: (state) => send(state),
      Delivered: (state, { upTo }) => {
        if (upTo <= state.sent) return stay()
        if (upTo === state.to.length) return become({ _tag: "Sent" }).setTimer(null)
        return send({ ...state, sent: upTo })
      }
    },
    Sent: {
      Send: () => refuse("AlreadySent"),
      Look: () => stay().reply("all"),
      Retry: () => stay(),
      Delivered: () => stay()
    }
  },
  perform: {
    // One failed ask fails the batch, which comes again. The inboxes recognize its key.
    Deliver: async ({ text, to, upTo }, { ask, self }) => {
      const key = self.id
      await Promise.all(to.map((id) => ask(inbox(id), { _tag: "Deliver", key, text })))
      return { _tag: "Delivered", upTo }
    }
  }
})
