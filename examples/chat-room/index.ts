/** A chat room: who is present, and the last messages. */
import { become, defineActor, refuse, Schema, stay } from "@restante/runtime"

/** Who neither enters nor says anything for so long is away, ms. */
export const awayAfterMs = 30_000
const membersMax = 200
/** Messages that the room keeps; a repeated one is recognized by its key among them. */
const historyMax = 1_000

const Member = Schema.Struct({ name: Schema.String, seenMs: Schema.Int })
type Present = ReadonlyArray<typeof Member.Type>

const without = (present: Present, name: string): Present =>
  present.filter((one) => one.name !== name)
const namesOf = (present: Present): ReadonlyArray<string> => present.map(({ name }) => name).sort()

/**
 * One room for each id. `Enter` is also the sign of life that a client sends now and then. `Enter`,
 * `Leave` and `Who` reply with the names of those present, `Say` with the number of the message.
 */
export const chatRoom = defineActor("chat-room", {
  state: { Open: { present: Schema.Array(Member) } },
  messages: {
    Enter: { name: Schema.String },
    Leave: { name: Schema.String },
    // The client makes the key: it repeats a message without an answer with the same key.
    Say: { name: Schema.String, text: Schema.String, key: Schema.String },
    Who: {},
    Sweep: {}
  },
  log: Schema.Struct({
    name: Schema.String,
    text: Schema.String,
    atMs: Schema.Int,
    key: Schema.String
  }),
  recall: { items: historyMax, keyOf: ({ key }) => key },
  timer: "Sweep",
  initial: { _tag: "Open", present: [] },
  table: {
    Open: {
      Enter: ({ present }, { name }, { nowMs }) => {
        const others = without(present, name)
        if (others.length >= membersMax) return refuse("Full", `${membersMax} members are here`)
        const next = [...others, { name, seenMs: nowMs }]
        const entered = become({ _tag: "Open", present: next }).reply(namesOf(next))
        // While somebody is present the timer is set.
        return present.length === 0 ? entered.setTimer(nowMs + awayAfterMs) : entered
      },
      Leave: ({ present }, { name }) => {
        const next = without(present, name)
        const left = become({ _tag: "Open", present: next }).reply(namesOf(next))
        return next.length === 0 ? left.setTimer(null) : left
      },
      Say: ({ present }, { key, name, text }, { findDuplicate, head, nowMs }) => {
        const known = findDuplicate(key)
        if (known !== undefined) return stay().reply(known)
        const others = without(present, name)
        if (others.length === present.length) return refuse("NotHere", `${name} enters first`)
        const said = become({ _tag: "Open", present: [...others, { name, seenMs: nowMs }] })
          .append({ name, text, atMs: nowMs, key })
          .reply(head + 1)
        return head < historyMax ? said : said.removeItems(head + 1 - historyMax)
      },
      Who: ({ present }) => stay().reply(namesOf(present)),
      Sweep: ({ present }, _, { nowMs }) => {
        const next = present.filter(({ seenMs }) => seenMs + awayAfterMs > nowMs)
        const swept = become({ _tag: "Open", present: next })
        if (next.length === 0) return swept
        const firstMs = Math.min(...next.map(({ seenMs }) => seenMs))
        return swept.setTimer(firstMs + awayAfterMs)
      }
    }
  }
})
