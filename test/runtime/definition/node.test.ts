/** Defined actors on a node in memory, by promises and by effects. */
import { Effect, Layer, Logger, Stream } from "effect"
import { afterEach, expect, it } from "vitest"
import { errorOf } from "../../../runtime/definition/errors.ts"
import { jsonFault } from "../../../runtime/definition/json-value.ts"
import { actorLog, actorSystem, askActor } from "../../../runtime/definition/index.ts"
import { AskTimeout, keyOf, MessageTooLarge, Overloaded, StorageFull, StorageUnavailable,
  System } from "../../../runtime/index.ts"
import { ActorFailed, type ActorNode, type ActorNodeOptions, append, become, CommitRejected,
  defineActor, InvalidMessage, memory, NodeStartFailed, OutcomeUnknown, refuse, Schema, startNode,
  stay } from "../../../runtime/main.ts"
import { counter } from "./examples/counter.ts"

const nodes: Array<ActorNode> = []

const start = async (...actors: ActorNodeOptions["actors"]): Promise<ActorNode> => {
  const node = await startNode({ actors, store: memory() })
  nodes.push(node)
  return node
}

afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.stop()))
})

const chat = defineActor("chat", {
  state: { Open: { messages: Schema.Int } },
  messages: { Post: { text: Schema.String, key: Schema.optionalKey(Schema.String) }, Break: {} },
  log: Schema.Struct({ text: Schema.String, atMs: Schema.Int, key: Schema.NullOr(Schema.String) }),
  recall: { items: 10, keyOf: ({ key }) => key ?? undefined },
  initial: { _tag: "Open", messages: 0 },
  table: {
    Open: {
      Post: ({ messages }, { key = null, text }, { findDuplicate, nowMs }) => {
        if (text === "") return refuse("Empty", "a message has a text")
        const known = key === null ? undefined : findDuplicate(key)
        return known === undefined
          ? become({ _tag: "Open", messages: messages + 1 })
            .append({ text, atMs: nowMs, key }).reply(messages + 1)
          : stay().reply(known)
      },
      Break: () => {
        throw new Error("planted")
      }
    }
  }
})

it("counts, and replies as the definition says", async () => {
  const node = await start(counter)
  expect(await node.ask(counter("visits"), { _tag: "Add", by: 2 })).toBe(2)
  expect(await node.ask(counter("visits"), { _tag: "Add", by: 3 })).toBe(5)
  expect(await node.ask(counter("visits"), { _tag: "Read" })).toBe(5)
  expect(await node.ask(counter("others"), { _tag: "Read" })).toBe(0)
})

it("replies with a refusal, and with undefined where a cell has no reply", async () => {
  const node = await start(chat)
  expect(await node.ask(chat("room"), { _tag: "Post", text: "" }))
    .toEqual({ _tag: "Refused", reason: "Empty", detail: "a message has a text" })
})

it("reads a log, follows it, and ends with the node", async () => {
  const node = await start(chat)
  const post = (text: string) => node.ask(chat("room"), { _tag: "Post", text })
  await post("one")
  await post("two")
  const stored: Array<string> = []
  for await (const { item, n } of node.log(chat("room"), { follow: false })) {
    stored.push(`${n} ${item.text}`)
  }
  expect(stored).toEqual(["1 one", "2 two"])
  const followed: Array<string> = []
  const following = (async () => {
    for await (const { item } of node.log(chat("room"), { from: 2 })) followed.push(item.text)
  })()
  await expect.poll(() => followed).toEqual(["two"])
  await post("three")
  await expect.poll(() => followed).toEqual(["two", "three"])
  await node.stop()
  await following
})

it("stops following when the loop ends", async () => {
  const node = await start(chat)
  await node.ask(chat("room"), { _tag: "Post", text: "one" })
  for await (const { item } of node.log(chat("room"))) {
    expect(item.text).toBe("one")
    break
  }
})

it("recognizes a repetition by the key of a log item", async () => {
  const node = await start(chat)
  const post = () => node.ask(chat("room"), { _tag: "Post", text: "once", key: "k" })
  expect([await post(), await post()]).toEqual([1, 1])
})

it("rejects a message that is not of the definition, before it is sent", async () => {
  const node = await start(counter)
  // The types refuse these; a program without types, or with wrong ones, can send them.
  const wrong: ReadonlyArray<never> = [{ _tag: "Add", by: 1.5 }, { _tag: "Subtract" }, 7] as never
  for (const message of wrong) {
    const failed = await node.ask(counter("visits"), message).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(InvalidMessage)
    expect(failed).toMatchObject({ outcome: "unchanged" })
    expect(String(failed)).toMatch(/^InvalidMessage: counter does not take this message: .+\. Send/)
  }
  await expect(node.ask(chat("room"), { _tag: "Post", text: "x" }))
    .rejects.toThrow(/^chat\/room does not take this message: no such kind/)
})

it("refuses messages that would change on their way, or that a node answers itself", () => {
  const define = (fields: Schema.Struct.Fields, tag = "Set") => () =>
    defineActor("lamp", {
      state: { On: {} },
      // The types refuse some of these, and not those that change a string into another one.
      messages: { [tag]: fields } as never,
      initial: { _tag: "On" },
      table: { On: { [tag]: () => stay() } } as never
    })
  const changed = [
    Schema.StringFromUriComponent,
    Schema.NumberFromString,
    Schema.Array(Schema.Struct({ text: Schema.StringFromBase64 })),
    Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1)))
  ]
  for (const field of changed) {
    expect(define({ field })).toThrow(
      /^the Schema of Set of lamp changes a value or adds one: give/
    )
  }
  const kept = [
    Schema.Int,
    Schema.optionalKey(Schema.String),
    Schema.NullOr(Schema.Literals(["a", "b"])),
    Schema.Json,
    Schema.Record(Schema.String, Schema.Array(Schema.Struct({ n: Schema.Number }))),
    Schema.String.check(Schema.isMinLength(1))
  ]
  for (const field of kept) expect(define({ field })).not.toThrow()
  for (const tag of ["LiftQuarantine", "InspectActor"]) {
    expect(define({}, tag)).toThrow(`lamp has a message ${tag}, which its node takes: rename it`)
  }
})

it("says that a cell threw an error, and stays usable", async () => {
  const node = await start(chat)
  const failed = await node.ask(chat("room"), { _tag: "Break" }).catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(ActorFailed)
  expect(failed).toMatchObject({ outcome: "unchanged", cause: { _tag: "ActorDefect" } })
  expect(await node.ask(chat("room"), { _tag: "Post", text: "one" })).toBe(1)
})

it("says whether a failed message can have changed anything", async () => {
  const key = keyOf(counter("visits"))
  expect(errorOf(key, new AskTimeout({ key, deadlineMs: 10 }))).toBeInstanceOf(OutcomeUnknown)
  expect(errorOf(key, new AskTimeout({ key, deadlineMs: 10 })).outcome).toBe("indeterminate")
  expect(errorOf(key, new StorageFull({ detail: "no space" }))).toBeInstanceOf(CommitRejected)
  // It may be the reply that is too large, of a decision that is stored.
  const large = errorOf(key, new MessageTooLarge({ key, bytesMax: 9 }))
  expect(large).toMatchObject({ outcome: "indeterminate" })
  expect(large.message).toContain("the message or its reply has more than 9 bytes. Repeat")
  expect(errorOf(key, new Overloaded({ key, retryAfterMs: 7 }))).toMatchObject({ retryAfterMs: 7 })
})

it("never stores a decision whose reply could not travel to another node", async () => {
  const cyclic: Array<unknown> = []
  cyclic.push(cyclic)
  const replies: ReadonlyArray<readonly [unknown, string | undefined]> = [
    [{ seen: [1, "a", true, null], missing: undefined }, undefined],
    [1n, "bigint 1 at reply"],
    [{ at: [0, new Date(0)] }, "an object of the class Date at reply.at[1]"],
    [[{ share: 1 / 0 }], "number Infinity at reply[0].share"],
    [[undefined], "undefined at reply[0]"],
    [{ names: new Set(["a"]) }, "an object of the class Set at reply.names"],
    [cyclic, "more than 200 levels"]
  ]
  for (const [reply, fault] of replies) {
    const found = jsonFault(reply, "reply")
    if (fault === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(fault)
    const odd = defineActor("odd", {
      state: { Open: { changes: Schema.Int } },
      messages: { Change: {}, Read: {} },
      initial: { _tag: "Open", changes: 0 },
      table: {
        Open: {
          // The types refuse these replies; a program without types can give them.
          Change: ({ changes }) =>
            become({ _tag: "Open", changes: changes + 1 }).reply(reply as never),
          Read: ({ changes }) => stay().reply(changes)
        }
      }
    })
    const node = await start(odd)
    const asked = await node.ask(odd("a"), { _tag: "Change" }).catch((error: unknown) => error)
    if (fault === undefined) expect(asked).toEqual(reply)
    else expect(asked).toMatchObject({ outcome: "unchanged", cause: { _tag: "ActorDefect" } })
    expect(await node.ask(odd("a"), { _tag: "Read" })).toBe(fault === undefined ? 1 : 0)
  }
})

it("never stores a state that the Schema refuses", async () => {
  const half = defineActor("half", {
    state: { Whole: { n: Schema.Int } },
    messages: { Halve: {}, Read: {} },
    initial: { _tag: "Whole", n: 3 },
    table: {
      Whole: {
        Halve: ({ n }) => become({ _tag: "Whole", n: n / 2 }).reply("halved"),
        Read: ({ n }) => stay().reply(n)
      }
    }
  })
  const node = await start(half)
  await expect(node.ask(half("a"), { _tag: "Halve" })).rejects.toBeInstanceOf(ActorFailed)
  expect(await node.ask(half("a"), { _tag: "Read" })).toBe(3)
})

it("starts again on what a store keeps, and not on one that does not open", async () => {
  const store = memory()
  const first = await startNode({ actors: [counter], store })
  await first.ask(counter("visits"), { _tag: "Add", by: 2 })
  await first.stop()
  const second = await startNode({ actors: [counter], store })
  expect(await second.ask(counter("visits"), { _tag: "Read" })).toBe(2)
  await second.stop()
  await second.stop()
  await expect(startNode({ actors: [counter, counter], store })).rejects
    .toThrow(/^two definitions are called counter: rename one/)
  const fails = Layer.effectDiscard(Effect.fail(new StorageUnavailable({ detail: "no disk" })))
  const ports = Layer.provideMerge(memory().ports, fails)
  await expect(startNode({ actors: [counter], store: { name: "a disk", ports } })).rejects
    .toThrow(
      new NodeStartFailed(
        "the node does not start on a disk: no disk. Correct the cause, and start it again"
      )
    )
})

it("has the same core by effects", async () => {
  const program = Effect.gen(function*() {
    const system = yield* System
    yield* askActor(system, chat("room"), { _tag: "Post", text: "one" })
    const wrong = { _tag: "Post", text: 1 } as never // of another type
    const refused = yield* Effect.flip(askActor(system, chat("room"), wrong))
    const log = yield* Stream.runCollect(actorLog(system, chat("room"), { follow: false }))
    return { tag: refused._tag, texts: log.map(({ item }) => item.text) }
  })
  const node = actorSystem({ actors: [chat], store: memory() })
  const run = Effect.provide(program, node).pipe(Effect.provide(Logger.layer([])))
  expect(await Effect.runPromise(run)).toEqual({ tag: "UnknownMessage", texts: ["one"] })
})

it("refuses a table without a cell, which a program without types can have", () => {
  const define = () =>
    defineActor("lamp", {
      state: { On: {}, Off: {} },
      messages: { Switch: {}, Read: {} },
      initial: { _tag: "On" },
      table: {
        On: { Switch: () => stay(), Read: () => stay() },
        Off: { Read: () => stay() }
      } as never
    })
  expect(define).toThrow("the table of lamp has no cell for Switch in Off: add it")
})

it("refuses definitions that contradict themselves", () => {
  const table = { On: { Set: () => append("x") } }
  const options = { state: { On: {} }, messages: { Set: {} }, initial: { _tag: "On" } } as const
  expect(() => defineActor("Lamp", { ...options, log: Schema.String, table })("a"))
    .toThrow("not an actor kind")
  const blinking = { On: { Set: () => stay().perform({ _tag: "Blink" }) } }
  expect(() => defineActor("lamp", { ...options, actions: { Blink: {} }, table: blinking }))
    .toThrow("lamp has no effect for Blink: add it to `perform`")
  const named = { ...options, state: { On: { $: Schema.optionalKey(Schema.Int) } } }
  expect(() => defineActor("lamp", { ...named, log: Schema.String, table }))
    .toThrow("a state of lamp has a field $: give it another name")
})
