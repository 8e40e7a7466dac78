/** An actor that counts. Each id, such as `counter("visits")`, is an actor of its own. */
import { become, defineActor, Schema, stay } from "@restante/runtime"

export const counter = defineActor("counter", {
  state: { Counting: { count: Schema.Int } },
  messages: { Add: { by: Schema.Int }, Read: {} },
  log: Schema.Struct({ by: Schema.Int }),
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      Add: ({ count }, { by }) =>
        become({ _tag: "Counting", count: count + by }).append({ by }).reply(count + by),
      Read: ({ count }) => stay().reply(count)
    }
  }
})
