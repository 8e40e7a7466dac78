/**
 * Two versions of a program in one cluster on a NATS server: the later one has another field, state
 * and message. Shards move both ways under load, and nothing is lost or refused.
 */
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { codecsOf } from "../../../actors/schemas.ts"
import { type Address, address, type AnyBehavior, type AskFailure, become,
  stay } from "../../../runtime/index.ts"
import { natsStorage } from "../../../runtime/nats/index.ts"
import { type Node, settled, start } from "./nodes.ts"
import { type ServerProcess, startServer } from "./servers.ts"

const kind = "counter"

const Counting = Schema.TaggedStruct("Counting", { count: Schema.Int })
const LabeledCounting = Schema.TaggedStruct("Counting", {
  ...Counting.fields,
  label: Schema.optionalKey(Schema.String)
})
const Frozen = Schema.TaggedStruct("Frozen", { count: Schema.Int })
const Add = Schema.TaggedStruct("Add", { by: Schema.Int })
const Freeze = Schema.TaggedStruct("Freeze", {})
const Read = Schema.TaggedStruct("Read", {})
const TimerFired = Schema.TaggedStruct("TimerFired", {})

type Earlier = typeof Counting.Type
const LaterMessage = Schema.Union([Add, Freeze, Read, TimerFired])
type LaterMessage = typeof LaterMessage.Type

type Later = typeof LabeledCounting.Type | typeof Frozen.Type

const add = <State extends Earlier>(state: State, { by }: typeof Add.Type) =>
  become<State>({ ...state, count: state.count + by }).reply({ count: state.count + by })

const earlier: AnyBehavior = {
  kind,
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      Add: add,
      Read: (state: Earlier) => stay().reply(state),
      TimerFired: () => stay()
    }
  },
  ...codecsOf(Counting, Schema.Union([Add, Read, TimerFired])),
  perform: () => Effect.void
}

const later: AnyBehavior = {
  kind,
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      // A new field is only added, so this version writes it at once; the earlier one keeps it.
      Add: (state: typeof LabeledCounting.Type, message: typeof Add.Type) =>
        add(state.count > 0 ? state : { ...state, label: "of the later version" }, message),
      Read: (state: Later) => stay().reply(state),
      Freeze: ({ count }: Later) => become({ _tag: "Frozen", count }).reply({ _tag: "Frozen" }),
      TimerFired: () => stay()
    },
    Frozen: {
      Add: ({ count }: Later) => stay().reply({ count }),
      Read: (state: Later) => stay().reply(state),
      Freeze: () => stay().reply({ _tag: "Frozen" }),
      TimerFired: () => stay()
    }
  },
  ...codecsOf(Schema.Union([LabeledCounting, Frozen]), LaterMessage),
  perform: () => Effect.void
}

let server: ServerProcess
beforeAll(async () => void (server = await startServer()))
afterAll(() => server.close())

const versionOne = (name: string) => node(name, earlier, 1)
const versionTwo = (name: string) => node(name, later, 2)

const node = (name: string, behavior: AnyBehavior, format: number): Promise<Node> =>
  start({ name, url: server.url, storage: natsStorage(), behavior, format })

const ids = Array.from({ length: 60 }, (_, at) => `c${at}`)
const at = (id: string): Address => address(kind, id)

const ask = ({ system }: Node, id: string, message: LaterMessage): Promise<unknown> =>
  new Promise((resolve, reject) =>
    system.askByCallback(
      at(id),
      message,
      (failure: AskFailure | undefined, reply) =>
        failure === undefined ? resolve(reply) : reject(failure)
    )
  )

/** Adds to every counter at these nodes in turn, until `until` resolves; the sum for each id. */
const addUntil = async (among: ReadonlyArray<Node>, until: Promise<unknown>) => {
  let isOver = false
  void until.finally(() => isOver = true)
  const sums = new Map(ids.map((id) => [id, 0]))
  const one = async (id: string, turn: number): Promise<void> => {
    if (isOver && turn > 0) return
    const to = among[turn % among.length]
    if (to !== undefined) await ask(to, id, { _tag: "Add", by: 1 })
    sums.set(id, (sums.get(id) ?? 0) + 1)
    return one(id, turn + 1)
  }
  await Promise.all(ids.map(one))
  await until
  return sums
}

it("two versions serve together, and lose neither fields nor requests", async () => {
  const old = await versionOne("a")
  const first = await versionTwo("b")
  await settled([old, first])
  const counts = [await addUntil([old, first], Promise.resolve())]
  const states = await Promise.all(ids.map((id) => ask(old, id, { _tag: "Read" })))
  const labeled = ids.filter((_, at) => JSON.stringify(states[at]).includes("label"))
  expect(labeled.length).toBeGreaterThan(0)
  expect(labeled.length).toBeLessThan(ids.length)
  counts.push(await addUntil([old], first.leave()))
  const next = await versionTwo("b")
  counts.push(await addUntil([old, next], settled([old, next])))
  expect(next.system.format()).toBe(1)
  counts.push(await addUntil([next], old.leave()))
  for (const id of ids) {
    const count = counts.reduce((sum, one) => sum + (one.get(id) ?? 0), 0)
    const label = labeled.includes(id) ? { label: "of the later version" } : {}
    expect(await ask(next, id, { _tag: "Read" })).toEqual({ _tag: "Counting", count, ...label })
  }
  // A state and a message that an earlier version cannot read wait until none is left.
  await expect.poll(() => next.system.format(), { timeout: 60_000 }).toBe(2)
  await ask(next, "c0", { _tag: "Freeze" })
  expect(await ask(next, "c0", { _tag: "Read" })).toMatchObject({ _tag: "Frozen" })
  await expect(versionOne("a")).rejects.toMatchObject({ _tag: "StoreFormatUnsupported" })
  await next.leave()
})
