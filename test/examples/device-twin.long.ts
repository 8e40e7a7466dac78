/**
 * A million device twins on one node in memory: what an idle one costs, stored and resident. The
 * bytes go to the output, and bounds of them are checked.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterAll, expect, it } from "vitest"
import { deviceTwin } from "../../examples/device-twin/index.ts"
import { type ActorNode, memory, startNode } from "../../runtime/main.ts"

const twins = 1_000_000
/** Twins that stay in memory for the second measurement. */
const residents = 100_000
/** Asks at once: fewer than the actors that a node has in memory. */
const atOnce = 2_000
/** A stored state is a text of about 110 characters, in the maps of the store; 514 on Node 20. */
const storedBytesMax = 1_000
/** A resident actor also has its activation and its decoded state; 1,119 on Node 20. */
const residentBytesMax = 2_500

const minutesMax = 60
const timeoutMs = minutesMax * 60_000

const collectGarbage = (): void => {
  setFlagsFromString("--expose-gc")
  // The flag makes the function in new contexts.
  const collect = runInNewContext("gc") as () => void
  collect()
}

const heapBytes = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const nodes: Array<ActorNode> = []
afterAll(() => Promise.all(nodes.map((node) => node.stop())))

/** Does something for twins from 0 on, `atOnce` at a time. */
const forEach = async (count: number, ask: (at: number) => Promise<unknown>): Promise<void> => {
  for (let from = 0; from < count; from += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, at) => ask(from + at)))
  }
}

const twin = (at: number) => deviceTwin(`device-${at}`)

it(`keeps ${twins} idle twins, and wakes one`, { timeout: timeoutMs }, async () => {
  const store = memory()
  const first = await startNode({ actors: [deviceTwin], store })
  nodes.push(first)
  const read = (node: ActorNode, at: number) => node.ask(twin(at), { _tag: "Read" })
  await read(first, 0)
  const emptyBytes = heapBytes()
  await forEach(
    twins,
    (at) =>
      first.ask(twin(at), { _tag: "Desire", settings: { brightness: at % 100 }, ifVersion: 0 })
  )
  const storedBytes = (heapBytes() - emptyBytes) / twins
  const woken = await read(first, 123_456)
  expect(woken.desired).toEqual({ version: 1, settings: { brightness: 56 } })
  await first.stop()

  const limits = { residentActorsMax: 2 * residents, activeActorsMax: 2 * residents }
  const second = await startNode({ actors: [deviceTwin], store, limits })
  nodes.push(second)
  await read(second, 0)
  const idleBytes = heapBytes()
  await forEach(residents, (at) => read(second, at))
  const residentBytes = (heapBytes() - idleBytes) / residents
  process.stdout.write(
    `${twins} device twins: ${Math.round(storedBytes)} bytes of heap for a stored one, ` +
      `${Math.round(residentBytes)} more for a resident one\n`
  )
  expect(storedBytes).toBeLessThan(storedBytesMax)
  expect(residentBytes).toBeLessThan(residentBytesMax)
})
