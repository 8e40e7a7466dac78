/** Actors and requests for the tests of the HTTP face. */
import { append, defineActor, refuse, Schema, stay } from "../../../runtime/main.ts"

const filter = { text: Schema.String, limit: Schema.optionalKey(Schema.Int) }

/** A room with every kind of message: commands, queries, one of a timer, one of an effect. */
export const room = defineActor("chat-room", {
  state: { Open: {} },
  messages: {
    Post: { text: Schema.String, level: Schema.optionalKey(Schema.Number) },
    Nest: { tree: Schema.Json },
    Break: {},
    Answer: { reply: Schema.Json },
    Find: {
      ...filter,
      exact: Schema.optionalKey(Schema.Boolean),
      tags: Schema.optionalKey(Schema.Array(Schema.String)),
      weight: Schema.optionalKey(Schema.Number)
    },
    Quiet: {},
    Due: {},
    Sent: {}
  },
  log: Schema.Struct({ text: Schema.String }),
  timer: "Due",
  initial: { _tag: "Open" },
  table: {
    Open: {
      Post: (_, { text }) => {
        if (text === "") return refuse("Empty")
        if (text === "gone") return refuse("Gone", "the room is closed: post to another one")
        if (text === "odd") return refuse("constructor")
        return append({ text }).reply(text.length)
      },
      Nest: () => stay().reply("nested"),
      Break: () => {
        throw new Error("planted secret of the table")
      },
      Answer: (_, { reply }) => stay().reply(reply),
      Find: (_, { exact = false, limit = 0, tags = [], text, weight = 0 }) =>
        stay().reply({ text, limit, exact, tags, weight }),
      Quiet: () => stay(),
      Due: () => stay(),
      Sent: () => stay().reply("only an effect sends this")
    }
  }
})
