/** What the types of a definition accept and reject; the compiler checks each line. */
import { expect, expectTypeOf, it } from "vitest"
import { type ActorNode, append, become, defineActor, isRefusal, type LogEntry, type PlainRefusal,
  refuse, Schema, stay } from "../../../runtime/main.ts"
import { counter } from "./examples/counter.ts"
import { reminder } from "./examples/reminder.ts"

const door = defineActor("door", {
  state: { Closed: {}, Open: { by: Schema.String } },
  messages: { Open: { by: Schema.String }, Close: {}, Look: {} },
  log: Schema.Struct({ event: Schema.Literals(["opened", "closed"]) }),
  initial: { _tag: "Closed" },
  table: {
    Closed: {
      Open: (_, { by }) => become({ _tag: "Open", by }).append({ event: "opened" }).reply("open"),
      Close: () => refuse("Closed"),
      Look: () => stay()
    },
    Open: {
      Open: ({ by }, message) => by === message.by ? stay().reply("open") : refuse("Open"),
      Close: () => become({ _tag: "Closed" }).append({ event: "closed" }),
      Look: ({ by }) => stay().reply({ by })
    }
  }
})

it("infers replies from the cells", () => {
  const check = (node: ActorNode) => {
    const added = node.ask(counter("visits"), { _tag: "Add", by: 1 })
    expectTypeOf(added).toEqualTypeOf<Promise<number>>()
    const opened = node.ask(door("front"), { _tag: "Open", by: "ann" })
    expectTypeOf(opened).toEqualTypeOf<Promise<PlainRefusal | "open">>()
    const seen = node.ask(door("front"), { _tag: "Look" })
    expectTypeOf(seen).toEqualTypeOf<Promise<{ readonly by: string } | undefined>>()
    const closed = node.ask(door("front"), { _tag: "Close" })
    expectTypeOf(closed).toEqualTypeOf<Promise<PlainRefusal | undefined>>()
    const log = node.log(door("front"))
    expectTypeOf(log).toEqualTypeOf<
      AsyncIterable<LogEntry<{ readonly event: "opened" | "closed" }>>
    >()
  }
  expect(check).toBeTypeOf("function")
  expect(isRefusal(undefined)).toBe(false)
})

it("rejects messages that are not of the definition", () => {
  const check = (node: ActorNode) => {
    // @ts-expect-error a field is missing
    void node.ask(counter("visits"), { _tag: "Add" })
    // @ts-expect-error the field has another type
    void node.ask(counter("visits"), { _tag: "Add", by: "1" })
    // @ts-expect-error no such field
    void node.ask(counter("visits"), { _tag: "Add", by: 1, twice: true })
    // @ts-expect-error no such message
    void node.ask(counter("visits"), { _tag: "Subtract", by: 1 })
    // @ts-expect-error only the timer sends it
    void node.ask(reminder("tea"), { _tag: "Due" })
  }
  expect(check).toBeTypeOf("function")
})

it("rejects tables with missing cells and other states, actions, items and replies", () => {
  const shared = {
    state: { On: { level: Schema.Int } },
    messages: { Set: { level: Schema.Int } },
    initial: { _tag: "On", level: 0 }
  } as const
  const define = () => {
    // @ts-expect-error the cell is missing
    defineActor("lamp", { ...shared, table: { On: {} } })
    defineActor("lamp", {
      ...shared,
      table: {
        On: {
          // @ts-expect-error the state lacks its level
          Set: () => become({ _tag: "On" })
        }
      }
    })
    defineActor("lamp", {
      ...shared,
      table: {
        On: {
          // @ts-expect-error the level is a number
          Set: () => become({ _tag: "On", level: "1" })
        }
      }
    })
    defineActor("lamp", {
      ...shared,
      table: {
        On: {
          // @ts-expect-error there are no actions
          Set: () => stay().perform({ _tag: "Blink" })
        }
      }
    })
    defineActor("lamp", {
      ...shared,
      table: {
        On: {
          // @ts-expect-error there are no items
          Set: () => append({ level: 1 })
        }
      }
    })
    defineActor("lamp", {
      ...shared,
      table: {
        On: {
          // @ts-expect-error a date is no JSON value
          Set: () => stay().reply(new Date(0))
        }
      }
    })
    defineActor("lamp", {
      ...shared,
      // @ts-expect-error a date is no JSON value
      messages: { Set: { at: Schema.Date } },
      table: { On: { Set: () => stay() } }
    })
    defineActor("lamp", {
      ...shared,
      // @ts-expect-error the number is a string in JSON
      messages: { Set: { level: Schema.NumberFromString } },
      table: { On: { Set: () => stay() } }
    })
    defineActor("lamp", {
      ...shared,
      // @ts-expect-error no message has this tag
      timer: "Due",
      table: { On: { Set: () => stay() } }
    })
    defineActor("lamp", {
      ...shared,
      actions: { Blink: {} },
      table: { On: { Set: () => stay().perform({ _tag: "Blink" }) } },
      perform: {
        // @ts-expect-error an effect results in a message of the actor
        Blink: async () => ({ _tag: "Blinked" })
      }
    })
    defineActor("lamp", {
      ...shared,
      // @ts-expect-error the level is missing
      initial: { _tag: "On" },
      table: { On: { Set: () => stay() } }
    })
  }
  expect(define).toBeTypeOf("function")
})
