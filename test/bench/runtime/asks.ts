/**
 * Asks the counters of one kind of runtime, in a process of its own, and prints JSON.
 * `node asks.js <memory|embedded|effect-cluster|restate> <asks in flight> <seconds> [where]`, where
 * `where` is a folder, or the origin of a Restate server.
 */
import { type Asked, askFor, assertCounts, type Counters } from "./counters.ts"

/** Until V8 has compiled what matters. */
const warmUpSeconds = 1

const [kind = "", inFlightText = "1", secondsText = "1", where = ""] = process.argv.slice(2)
const inFlight = Number(inFlightText)

/** Each loads its own program alone: a larger heap makes the collections of all of them longer. */
const kinds: Readonly<Record<string, () => Promise<Counters>>> = {
  memory: async () => (await import("./own-counters.ts")).ownCounters(),
  embedded: async () => (await import("./own-counters.ts")).ownCounters(where),
  "effect-cluster": async () =>
    (await import("./effect-cluster-counters.ts")).effectClusterCounters(),
  restate: async () => (await import("./restate-counters.ts")).restateCounters(where, inFlight)
}

const run = async (): Promise<Asked> => {
  const counters = await kinds[kind]?.()
  if (counters === undefined) throw new Error(`no counters are called ${kind}`)
  const counts = new Map<string, number>()
  // A store may have counts of an earlier run: the first asks find them out.
  await askFor(counters, counts, inFlight, warmUpSeconds)
  for (const id of counts.keys()) counts.set(id, await counters.add(id))
  const asked = await askFor(counters, counts, inFlight, Number(secondsText))
  await assertCounts(counters, counts)
  await counters.stop()
  return asked
}

process.stdout.write(`${JSON.stringify(await run())}\n`)
process.exit(0)
