/** Expects a sign of life each minute, and counts the minutes without one. */
import { become, defineActor, Schema, stay } from "../../../../runtime/main.ts"

export const heartbeat = defineActor("heartbeat", {
  state: { Idle: {}, Watching: { seen: Schema.Boolean, silent: Schema.Int } },
  messages: { Beat: {}, Check: {}, Look: {} },
  timer: "Check",
  initial: { _tag: "Idle" },
  table: {
    Idle: {
      Beat: () =>
        become({ _tag: "Watching", seen: true, silent: 0 })
          .setInterval(60_000, { missed: "skip" }),
      Check: () => stay(),
      Look: () => stay().reply("unknown")
    },
    Watching: {
      Beat: (state) => state.seen ? stay() : become({ ...state, seen: true }),
      Check: ({ seen, silent }) =>
        become({ _tag: "Watching", seen: false, silent: seen ? 0 : silent + 1 }),
      Look: ({ silent }) => stay().reply(silent > 1 ? "silent" : "alive")
    }
  }
})
