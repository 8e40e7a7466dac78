/** The simulated network: the contract of the transport port, and what noise does to messages. */
import { Effect, ManagedRuntime } from "effect"
import { describe, expect, it } from "vitest"
import { address, shardOf, Transport } from "../../../runtime/index.ts"
import { type ClusterNoise, quiet,
  SimulatedNetwork } from "../../../runtime/testing/cluster/index.ts"
import { type Computer, Trace, VirtualTime } from "../../../runtime/testing/time/index.ts"
import { fromLayer, type Harness } from "../../suites/harness.ts"
import { transportSuite } from "../../suites/transport.ts"
import type { TransportApi } from "../../../runtime/ports/index.ts"

const networkOf = (noise: ClusterNoise) => {
  const time = new VirtualTime(1)
  const trace = new Trace(time, true)
  return { time, trace, network: new SimulatedNetwork(time, trace, noise) }
}

/** How often the simulated time follows the real one, ms. */
const followMs = 2

transportSuite("simulated network", async (): Promise<Harness<TransportApi>> => {
  const { network, time } = networkOf(quiet)
  const beganMs = performance.now()
  const following = setInterval(() => void time.runUntil(performance.now() - beganMs), followMs)
  const line = network.connect(time.newComputer("node-0", 1, 0))
  const harness = await fromLayer(Transport, line.layers.transport, async () => {
    clearInterval(following)
  })
  return harness
})

interface Pair {
  readonly computers: ReadonlyArray<Computer>
  readonly network: SimulatedNetwork
  readonly time: VirtualTime
  /** How many messages the second node has decided. */
  readonly decided: () => number
  /** Sends this many messages from the first node to the second; returns how each ended. */
  readonly ask: (count: number) => Promise<ReadonlyArray<string>>
}

const to = address("account", "alice")
const deadlineMs = 5_000

/** Two nodes in simulated time; the second serves the shard. */
const withPair = async (noise: Partial<ClusterNoise>, run: (pair: Pair) => Promise<void>) => {
  const { network, time } = networkOf({ ...quiet, ...noise })
  const restore = time.install()
  try {
    const computers = [0, 1].map((at) => time.newComputer(`node-${at}`, 1, 0))
    const lines = computers.map((computer) => network.connect(computer))
    const [asking, serving] = await Promise.all(
      lines.map((line) => ManagedRuntime.make(line.layers.transport).runPromise(Transport))
    )
    let count = 0
    const served = serving?.serve(shardOf(to), async (_, text) => {
      count++
      return text
    }) ?? Effect.void
    Effect.runFork(Effect.scoped(Effect.andThen(served, Effect.never)))
    await time.runUntil(1_000)
    const ask = async (messages: number): Promise<ReadonlyArray<string>> => {
      const ends: Array<string> = []
      for (let at = 0; at < messages; at++) {
        asking?.request(to, String(at), deadlineMs, (failure) => {
          ends.push(failure?._tag ?? "answered")
        })
      }
      await time.runUntil(time.nowMs + 2 * deadlineMs)
      return ends
    }
    await run({ computers, network, time, decided: () => count, ask })
  } finally {
    restore()
  }
}

describe("messages between simulated nodes", () => {
  it("are decided once, though each arrives twice and late", () =>
    withPair({ doubles: 1, delays: 0.5, overtakes: 1 }, async ({ ask, decided }) => {
      expect(await ask(100)).toEqual(Array.from({ length: 100 }, () => "answered"))
      expect(decided()).toBe(100)
    }))

  it("get lost, and so do answers: then the outcome is unknown", () =>
    withPair({ drops: 0.3 }, async ({ ask, decided }) => {
      const ends = await ask(200)
      const answered = ends.filter((end) => end === "answered").length
      expect(ends).toHaveLength(200)
      expect(new Set(ends)).toEqual(new Set(["AskTimeout", "answered"]))
      expect(decided()).toBeGreaterThan(answered)
      expect(decided()).toBeLessThan(200)
    }))

  it("pass no path that is cut, until it is whole again", () =>
    withPair({}, async ({ ask, decided, network, time }) => {
      network.cuts.set("node-1 node-0", time.nowMs + 2 * deadlineMs)
      expect(await ask(1)).toEqual(["AskTimeout"])
      expect(decided()).toBe(1)
      expect(await ask(1)).toEqual(["answered"])
    }))

  it("do not reach a process that has ended, and nobody has the shard once that is noticed", () =>
    withPair({}, async ({ ask, computers: [, second], decided, network, time }) => {
      if (second === undefined) throw new Error("there are two nodes")
      second.alive = false
      expect(await ask(1)).toEqual(["AskTimeout"])
      expect(decided()).toBe(0)
      const line = network.serverFor(network.connect(second), shardOf(to))?.owner
      if (line !== undefined) network.lose(line)
      await time.runUntil(time.nowMs + 2 * deadlineMs)
      expect(await ask(1)).toEqual(["NoOwner"])
    }))
})
