import { become, defineActor, Schema, stay } from "../../../../runtime/main.ts"

export const counter = defineActor("counter", {
  state: { Counting: { count: Schema.Int } },
  messages: { Add: { by: Schema.Int }, Read: {} },
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      Add: ({ count }, { by }) => become({ _tag: "Counting", count: count + by }).reply(count + by),
      Read: ({ count }) => stay().reply(count)
    }
  }
})
