/**
 * Many idle actors on one node, in a process of its own; prints JSON.
 * `node --expose-gc population.js memory <count>` and `… embedded <count> <folder>` make counters,
 * wait until they are passivated, and print bytes for each. `… timers <count> <folder>` makes
 * reminders that are due in a year. `… open <folder>` prints how long the node takes to answer an
 * actor of this folder, and its memory.
 */
import { embedded } from "../../../runtime/embedded/main.ts"
import { type ActorNode, memory, startNode } from "../../../runtime/main.ts"
import { counter } from "../../runtime/definition/examples/counter.ts"
import { reminder } from "../../runtime/definition/examples/reminder.ts"

/** Bytes for each actor that is known and idle. */
export interface Population {
  /** The JavaScript heap and buffers. */
  readonly heapBytes: number
  /** The resident set of the process. */
  readonly residentBytes: number
}

export interface Opened {
  /** From the start of the process to the reply of one actor. */
  readonly seconds: number
  readonly residentMb: number
  /** Timers in memory. */
  readonly timers: number
}

const atATime = 500
const pollMs = 50
const msPerDay = 86_400_000
const daysAhead = 365
const limits = { idleMs: 1_000, sweepMs: 200 }
const bytesPerMb = 1e6

interface Held {
  readonly heap: number
  readonly resident: number
}

/** What the process holds once nothing is garbage. */
const held = (): Held => {
  if (globalThis.gc === undefined) throw new Error("run it by node --expose-gc")
  globalThis.gc()
  globalThis.gc()
  const { arrayBuffers, heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed + arrayBuffers, resident: rss }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const resident = ({ system }: ActorNode): number =>
  [...system.snapshot().activations.values()].reduce((sum, { active }) => sum + active, 0)

/** Makes an actor for each number, some at a time. */
const each = async (count: number, make: (n: number) => Promise<unknown>): Promise<void> => {
  for (let from = 0; from < count; from += atATime) {
    const some = Array.from({ length: Math.min(atATime, count - from) }, (_, at) => from + at)
    await Promise.all(some.map(make))
  }
}

const start = (folder: string | undefined): Promise<ActorNode> =>
  startNode({
    actors: [counter, reminder],
    store: folder === undefined ? memory() : embedded(folder),
    limits
  })

const addTo = (node: ActorNode, n: number): Promise<number> =>
  node.ask(counter(`c${n}`), { _tag: "Add", by: 1 })

const populate = async (count: number, folder: string | undefined): Promise<Population> => {
  const node = await start(folder)
  await each(atATime, (n) => addTo(node, n))
  const before = held()
  await each(count, (n) => addTo(node, atATime + n))
  while (resident(node) > 0) await pause(pollMs)
  const after = held()
  await node.stop()
  return {
    heapBytes: (after.heap - before.heap) / count,
    residentBytes: (after.resident - before.resident) / count
  }
}

const setTimers = async (count: number, folder: string): Promise<void> => {
  const node = await start(folder)
  const atMs = Date.now() + daysAhead * msPerDay
  await each(
    count,
    (n) => node.ask(reminder(`r${n}`), { _tag: "Remind", text: "later", atMs: atMs + n })
  )
  await node.stop()
}

const open = async (folder: string): Promise<Opened> => {
  const node = await start(folder)
  await addTo(node, 0)
  // The time origin is the start of the process.
  const seconds = performance.now() / 1_000
  const { timers } = node.system.snapshot()
  const residentMb = held().resident / bytesPerMb
  await node.stop()
  return { seconds, residentMb, timers }
}

const [mode = "", first = "", folder] = process.argv.slice(2)

const run = (): Promise<unknown> => {
  switch (mode) {
    case "memory":
    case "embedded":
      return populate(Number(first), mode === "memory" ? undefined : folder)
    case "timers":
      return setTimers(Number(first), folder ?? "")
    case "open":
      return open(first)
    default:
      throw new Error(`no mode is called ${mode}`)
  }
}

process.stdout.write(`${JSON.stringify(await run() ?? null)}\n`)
process.exit(0)
