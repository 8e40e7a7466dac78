/**
 * Asks while shards move, over a network in memory: with any delays and crashes, no message is
 * decided twice.
 */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import { movedReplyLatestMs, silenceResendMs, tenureSettledMs } from "../../../runtime/limits.ts"
import { Nats, type NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { TurnWrites } from "../../../runtime/nats/connection/turn-writes.ts"
import { natsTransport } from "../../../runtime/nats/transport/transport.ts"
import { Transport, type TransportApi } from "../../../runtime/ports/transport.ts"
import { randomOf } from "../../../runtime/testing/index.ts"
import { Network } from "./network.ts"
import { testAuthenticator } from "./keys.ts"
import { requestOf } from "../../suites/request.ts"

const NODES = 4

const ASKS = 40

const DEADLINE_MS = 10_000

/** Greatest delay: one message reaches two nodes within the time that the proof allows. */
const WAY_MS = tenureSettledMs - movedReplyLatestMs - 50

const KNOWN_MS = 100

const alice = address("mailbox", "alice")

beforeEach(() =>
  void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] })
)

afterEach(() => void vi.useRealTimers())

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Node {
  readonly nc: NatsConnection
  readonly transport: TransportApi
  underWay: number
  alive: boolean
}

const nodeOn = async (network: Network): Promise<Node> => {
  const nc = network.connect()
  // The transport uses nothing else of the connection.
  const nats = Layer.succeed(Nats, { nc, writes: new TurnWrites(nc) } as NatsApi)
  const runtime = ManagedRuntime.make(Layer.provide(natsTransport(testAuthenticator), nats))
  return { nc, transport: await runtime.runPromise(Transport), underWay: 0, alive: true }
}

/** Waits until a node has nothing under way; returns at once for a dead node. */
const drained = async (node: Node): Promise<void> => {
  if (!node.alive || node.underWay === 0) return
  await wait(5)
  return drained(node)
}

class World {
  readonly decided = new Map<string, number>()
  readonly ends = new Map<string, string>()
  readonly network: Network
  readonly random: () => number
  nodes: ReadonlyArray<Node> = []
  private owner: Node | undefined
  private claim = 0
  private claimBefore: number | undefined
  private orphaned = false
  /** Claims that have ended without the node noticing. */
  private readonly overtaken = new Set<number>()
  private stop: () => Promise<void> = () => Promise.resolve()

  constructor(random: () => number) {
    this.random = random
    this.network = new Network(random, WAY_MS, KNOWN_MS)
  }

  async start(): Promise<void> {
    this.nodes = await Promise.all(Array.from({ length: NODES }, () => nodeOn(this.network)))
    // The subscription of the answer's inbox arrives before the message.
    await vi.advanceTimersByTimeAsync(KNOWN_MS)
  }

  /** This node takes the shard. */
  take(node: Node): void {
    this.owner = node
    const { claimBefore: after, orphaned } = this
    const isHeld = () => !this.overtaken.has(claim)
    const claim = ++this.claim
    const held = { claim, after, orphaned, isHeld }
    this.claimBefore = claim
    this.orphaned = false
    const scope = Effect.runSync(Scope.make())
    const serve = async (_: unknown, text: string) => {
      if (this.owner !== node) return undefined
      node.underWay++
      this.decided.set(text, (this.decided.get(text) ?? 0) + 1)
      await wait(this.random() * 300)
      node.underWay--
      return `done ${text}`
    }
    Effect.runSync(Scope.provide(node.transport.serve(shardOf(alice), serve, held), scope))
    this.stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  }

  /** The shard moves from its owner to this node in an orderly way; then the owner pauses. */
  async move(node: Node, standsMs: number): Promise<void> {
    const last = this.owner
    this.owner = undefined
    await this.stop()
    if (last !== undefined) await drained(last)
    if (last !== undefined && last !== node) this.network.stand(last.nc, standsMs)
    await wait(this.random() * 100)
    if (node.alive) this.take(node)
  }

  /** The owner crashes, and no node knows its decisions. */
  crash(): void {
    if (this.owner === undefined) return
    this.owner.alive = false
    this.network.kill(this.owner.nc)
    this.owner = undefined
    this.orphaned = true
  }

  /**
   * The owner pauses until others take the shard from it, and possibly much longer; the result
   * lets it notice.
   */
  standStill(forMs = 2 * DEADLINE_MS): () => Promise<void> {
    if (this.owner !== undefined) this.network.stand(this.owner.nc, forMs)
    this.overtaken.add(this.claim)
    this.owner = undefined
    this.orphaned = true
    return this.stop
  }

  /** Asks, and repeats asks that no node accepted. */
  async ask(at: Node, text: string): Promise<void> {
    const asked = Effect.result(requestOf(at.transport, alice, text, DEADLINE_MS))
    const result = await Effect.runPromise(asked)
    if (result._tag === "Success") return void this.ends.set(text, result.success)
    if (result.failure._tag !== "NoOwner") {
      return void this.ends.set(text, result.failure._tag)
    }
    expect([text, this.decided.get(text)]).toEqual([text, undefined])
    await wait(50)
    return this.ask(at, text)
  }
}

interface History {
  readonly seed: number
  /** How long each owner has the shard, ms; 0: the owner dies after 50 ms. */
  readonly stays: ReadonlyArray<number>
  /** Fraction of the messages to actors that are lost. */
  readonly lost?: number
  /** How long each owner pauses after it released the shard, ms. */
  readonly standsMs?: number
}

/** Asks nodes that do not die, while the shard moves among them. */
const play = async ({ lost = 0, seed, standsMs = 0, stays }: History): Promise<World> => {
  const world = new World(randomOf(seed))
  await world.start()
  world.network.lost = lost
  world.network.doubled = 0.02
  const [asker, first] = world.nodes
  if (asker === undefined || first === undefined) throw new Error("no nodes")
  world.take(first)
  const pauseMs = stays.reduce((sum, ms) => sum + ms + 200, 0) / ASKS
  const asking = (async () => {
    const asks: Array<Promise<void>> = []
    for (let n = 0; n < ASKS; n++) {
      asks.push(world.ask(asker, String(n)))
      // Others in the same turn: they go as a bundle once the owner is known.
      if (world.random() < 0.3) continue
      await wait(pauseMs)
    }
    await Promise.all(asks)
  })()
  const moving = (async () => {
    for (const [turn, stayMs] of stays.entries()) {
      await wait(stayMs === 0 ? 50 : stayMs)
      if (stayMs === 0) world.crash()
      // The asking node never owns the shard, so it never dies.
      const living = world.nodes.slice(1).filter(({ alive }) => alive)
      const next = living[turn % living.length]
      if (next !== undefined) await world.move(next, standsMs)
    }
  })()
  const all = Promise.all([asking, moving])
  const progress = { over: false }
  void all.catch(() => undefined).finally(() => progress.over = true)
  while (!progress.over) await vi.advanceTimersByTimeAsync(100)
  await all
  return world
}

const twice = ({ decided }: World) => [...decided].filter(([, count]) => count > 1)

const seed = fc.integer()

const stay = fc.integer({ min: 1, max: 1_500 })

const runs = { numRuns: Number(process.env["MOVING_RUNS"] ?? 15) }

describe("asks while their shard moves", () => {
  it("are answered, each decided once", () =>
    fc.assert(
      fc.asyncProperty(
        seed,
        fc.array(stay, { minLength: 1, maxLength: 8 }),
        async (seed, stays) => {
          const world = await play({ seed, stays })
          expect(twice(world)).toEqual([])
          expect([...world.ends].filter(([text, end]) => end !== `done ${text}`)).toEqual([])
          expect(world.decided.size).toBe(ASKS)
        }
      ),
      runs
    ), 120_000)

  it("are answered although messages are lost, and paused owners read late", () => {
    // One seed: with others the same ask may, very rarely, lose one copy after the other.
    const lost = fc.constantFrom(0, 0.03)
    const standsMs = fc.integer({ min: 0, max: 2_500 })
    const stays = fc.array(fc.integer({ min: 500, max: 4_000 }), { minLength: 1, maxLength: 2 })
    return fc.assert(
      fc.asyncProperty(
        fc.record({ seed, stays, lost, standsMs }),
        async (history) => {
          const world = await play(history)
          expect(twice(world)).toEqual([])
          expect([...world.ends].filter(([text, end]) => end !== `done ${text}`)).toEqual([])
          expect(world.decided.size).toBe(ASKS)
        }
      ),
      { ...runs, seed: 1 }
    )
  })

  it("end undecided once another node has the shard of a paused one", async () => {
    const world = new World(randomOf(1))
    await world.start()
    const [asker, first, second] = world.nodes
    if (asker === undefined || first === undefined || second === undefined) throw new Error("none")
    world.take(first)
    await vi.advanceTimersByTimeAsync(tenureSettledMs)
    world.standStill()
    const asked = world.ask(asker, "x")
    await vi.advanceTimersByTimeAsync(DEADLINE_MS / 2)
    expect([...world.ends]).toEqual([])
    world.take(second)
    await vi.advanceTimersByTimeAsync(silenceResendMs + 2 * KNOWN_MS + 2 * WAY_MS)
    expect([...world.ends]).toEqual([["x", "AskTimeout"]])
    await vi.advanceTimersByTimeAsync(2 * DEADLINE_MS)
    await asked
    expect([...world.decided]).toEqual([])
  })

  it("are answered by the next owner while the last one is paused", async () => {
    const world = new World(randomOf(1))
    await world.start()
    const [asker, first, second] = world.nodes
    if (asker === undefined || first === undefined || second === undefined) throw new Error("none")
    world.take(first)
    await vi.advanceTimersByTimeAsync(tenureSettledMs)
    world.standStill()
    world.take(second)
    await vi.advanceTimersByTimeAsync(KNOWN_MS)
    const texts = Array.from({ length: 20 }, (_, n) => String(n))
    const asked = Promise.all(texts.map((text) => world.ask(asker, text)))
    await vi.advanceTimersByTimeAsync(silenceResendMs + 4 * WAY_MS)
    expect([...world.ends].sort()).toEqual(texts.map((text) => [text, `done ${text}`]).sort())
    await vi.advanceTimersByTimeAsync(DEADLINE_MS)
    await asked
    expect(twice(world)).toEqual([])
  })

  it("are decided once although a paused owner reports no decision", () => {
    const history = { seed, beforeMs: fc.nat(WAY_MS), stayMs: fc.nat(1_000), notices: fc.boolean() }
    const stoodMs = 2 * tenureSettledMs
    return fc.assert(
      fc.asyncProperty(fc.record(history), async ({ beforeMs, notices, seed, stayMs }) => {
        const world = new World(randomOf(seed))
        await world.start()
        const [asker, first, second, third] = world.nodes
        if (asker === undefined || first === undefined) throw new Error("none")
        if (second === undefined || third === undefined) throw new Error("none")
        world.take(first)
        await vi.advanceTimersByTimeAsync(tenureSettledMs)
        const noticed = world.standStill(stoodMs)
        world.take(second)
        await vi.advanceTimersByTimeAsync(stoodMs - beforeMs)
        const asked = Promise.all(["x", "y", "z"].map((text) => world.ask(asker, text)))
        await vi.advanceTimersByTimeAsync(stayMs)
        if (notices) await noticed()
        const moved = world.move(third, 0)
        await vi.advanceTimersByTimeAsync(2 * DEADLINE_MS)
        await Promise.all([asked, moved])
        expect(twice(world)).toEqual([])
        expect([...world.ends].filter(([text, end]) => end !== `done ${text}`)).toEqual([])
      }),
      { numRuns: 10 * runs.numRuns }
    )
  })

  it("are decided at most once when owners die", () => {
    const stays = fc.array(fc.oneof({ weight: 4, arbitrary: stay }, fc.constant(0)), {
      minLength: 2,
      maxLength: 8
    }).filter((ms) => ms.filter((one) => one === 0).length < NODES - 1)
    return fc.assert(
      fc.asyncProperty(seed, stays, async (seed, stays) => {
        const world = await play({ seed, stays })
        expect(twice(world)).toEqual([])
        for (const [text, end] of world.ends) {
          expect(["AskTimeout", `done ${text}`]).toContain(end)
          if (end !== "AskTimeout") expect(world.decided.get(text)).toBe(1)
        }
        expect(world.ends.size).toBe(ASKS)
      }),
      runs
    )
  })
})
