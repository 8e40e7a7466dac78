/** A hundred counters of one kind of runtime, and how fast they answer. */

/** Counters by id, each an actor. */
export interface Counters {
  /** Adds one to a counter; resolves to its count once that is stored. */
  readonly add: (id: string) => Promise<number>
  readonly stop: () => Promise<void>
}

/** What the asks of some seconds took. */
export interface Asked {
  readonly asks: number
  readonly seconds: number
  /** Processor time of this process, which asks and, in process, also answers. */
  readonly cpuMs: number
}

const ids = Array.from({ length: 100 }, (_, at) => `counter-${at}`)

const msPerSecond = 1_000
const usPerMs = 1_000

/**
 * Asks for some seconds, with so many asks in flight. Throws an Error when a counter has counted
 * another number than the asks of it: then the figures would be of something else.
 */
export const askFor = async (
  counters: Counters,
  counts: Map<string, number>,
  inFlight: number,
  seconds: number
): Promise<Asked> => {
  let asks = 0
  const startedMs = performance.now()
  const untilMs = startedMs + seconds * msPerSecond
  const cpuBefore = process.cpuUsage()
  const one = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const id = ids[asks++ % ids.length] ?? ""
      counts.set(id, (counts.get(id) ?? 0) + 1)
      await counters.add(id)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, one))
  const { system, user } = process.cpuUsage(cpuBefore)
  const took = (performance.now() - startedMs) / msPerSecond
  return { asks, seconds: took, cpuMs: (system + user) / usPerMs }
}

/** Throws an Error when a counter has another count than the asks of it. */
export const assertCounts = async (
  { add }: Counters,
  counts: ReadonlyMap<string, number>
): Promise<void> => {
  for (const [id, count] of counts) {
    const found = await add(id)
    if (found !== count + 1) throw new Error(`${id} has ${found}, after ${count + 1} asks`)
  }
}
