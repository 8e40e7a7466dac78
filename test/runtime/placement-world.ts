/**
 * A cluster in one process under a seeded clock and network: registry calls that are slow, lost,
 * answered late or never, watches that lag, clocks that differ, nodes that crash or pause.
 */
import { Effect, Logger } from "effect"
import { SHARDS } from "../../runtime/actor/address.ts"
import type { StorageUnavailable } from "../../runtime/actor/errors.ts"
import type { Fork } from "../../runtime/clock.ts"
import { ClusterPlacement } from "../../runtime/cluster/cluster-placement.ts"
import { memberKey, memberText, type ProcessName } from "../../runtime/cluster/member-entry.ts"
import { makeMemoryRegistry } from "../../runtime/memory/registry.ts"
import { type PingsApi, PingUnanswered } from "../../runtime/ports/pings.ts"
import type { RegistryApi, RegistryEntry } from "../../runtime/ports/registry.ts"
import { randomOf } from "../../runtime/testing/index.ts"

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
  live: boolean
}

/** Logs nothing. */
const fork: Fork = Effect.runForkWith(
  Effect.runSync(Effect.provide(Effect.context<never>(), Logger.layer([])))
)

export interface SimulatedNode {
  readonly name: string
  readonly clustered: ClusterPlacement
  readonly alive: () => boolean
  /** Kills the node. */
  readonly crash: () => void
  /** Pauses the node's process for this time. */
  readonly pause: (ms: number) => void
  /** Loses the node's registry calls and pings for this time. */
  readonly cutOff: (ms: number) => void
  /** Loses the node's registry calls for this time. */
  readonly loseRegistry: (ms: number) => void
  /** Loses the node's pings, and those of others to it, for this time. */
  readonly isolate: (ms: number) => void
  /** Stops the node with a drain. */
  readonly leave: () => Promise<void>
}

/**
 * Errors of witnesses: one answers a node again that it agreed to remove, or agrees to every
 * removal.
 */
export type PlantedWitness = "answers again" | "agrees to all"

const plantedAnswer = (
  planted: PlantedWitness | undefined,
  text: string,
  answer: (text: string) => string
): string => {
  if (planted === "answers again" && text.startsWith("ping ")) return "alive"
  return planted === "agrees to all" && text.startsWith("remove ") ? "agreed" : answer(text)
}

export class World {
  nowMs = 0
  /** Fraction of the calls that are lost, late or not answered. */
  faults = 0
  readonly nodes: Array<SimulatedNode> = []
  /** Violations: two nodes that accept messages of one shard. */
  readonly violations: Array<string> = []
  /** Nodes that could not start because others had their names. */
  readonly refused: Array<string> = []
  /** How often each shard got a new owner. */
  readonly takes = Array.from({ length: SHARDS }, () => 0)
  private readonly believers = Array.from({ length: SHARDS }, () => new Set<SimulatedNode>())
  private readonly random: () => number
  private events: Array<Event> = []
  private orders = 0
  private readonly registry: RegistryApi
  /** By the name of a process: passes a ping to it. */
  private readonly listeners = new Map<
    string,
    {
      readonly name: string
      readonly deliver: (text: string, answered: (answer: string) => void) => void
    }
  >()
  /** By two names: until when the pings between these nodes are lost. */
  private readonly severedUntilMs = new Map<string, number>()
  private incarnations = 0
  private readonly processes: Array<() => boolean> = []

  private readonly planted: PlantedWitness | undefined

  constructor(seed: number, planted?: PlantedWitness) {
    this.planted = planted
    this.random = randomOf(seed)
    // An expired key is reported a moment late, as NATS does.
    const later = (ms: number, run: () => void) => this.later(ms + this.random() * 300, run)
    this.registry = makeMemoryRegistry(later)
  }

  later(delayMs: number, run: () => void): () => void {
    const event = { atMs: this.nowMs + delayMs, order: this.orders++, run, live: true }
    // A binary search for its place: later ones first, so that the next is popped.
    let low = 0
    let high = this.events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.events[middle]?.atMs ?? 0) > event.atMs) low = middle + 1
      else high = middle
    }
    this.events.splice(low, 0, event)
    return () => void (event.live = false)
  }

  /** Advances time. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms
    for (;;) {
      const event = this.events.at(-1)
      if (event === undefined || event.atMs > endMs) break
      this.events.pop()
      if (!event.live) continue
      this.nowMs = event.atMs
      event.run()
      await new Promise((resolve) => setImmediate(resolve))
      this.check()
    }
    this.nowMs = endMs
    this.check()
  }

  /** Writes a node's key like a process that did not read it before. */
  async overwrite(name: string): Promise<void> {
    const key = memberKey(name)
    const { revision } = await Effect.runPromise(this.registry.get(key))
    const value = memberText({
      incarnation: "another",
      leaving: false,
      format: 1,
      witnesses: []
    })
    await Effect.runPromise(this.registry.put(key, value, revision, 15_000))
  }

  /** Loses the pings between two nodes for this time. */
  sever(one: string, other: string, ms: number): void {
    for (const pair of [`${one} ${other}`, `${other} ${one}`]) {
      this.severedUntilMs.set(pair, this.nowMs + ms)
    }
  }

  /** The node that accepts the messages of each shard. */
  owners(): ReadonlyArray<string | undefined> {
    return Array.from(
      { length: SHARDS },
      (_, shard) =>
        this.nodes.find(({ alive, clustered }) => alive() && clustered.placement.owns(shard))?.name
    )
  }

  /** Nodes of one machine can detect each other's ends. */
  start(name: string, machine?: string): SimulatedNode {
    const { random } = this
    const rate = 0.9 + random() * 0.2
    const offsetMs = random() * 1e6
    let alive = true
    let left = false
    let awakeAtMs = 0
    let reachesAtMs = 0
    let pingsAtMs = 0
    /** Runs on the node: never if it is dead, later if it is paused. */
    const onNode = (run: () => void) => (): void => {
      if (!alive) return
      if (this.nowMs < awakeAtMs) this.later(awakeAtMs - this.nowMs + 0.001, onNode(run))
      else run()
    }
    const later = (ms: number, run: () => void) => this.later(ms / rate, onNode(run))
    const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const lot = random()
        if (this.nowMs < reachesAtMs || lot < this.faults / 3) return
        const slowMs = lot < this.faults * 2 / 3 ? random() * 12_000 : random() * 20
        const answered = lot < this.faults / 3 || lot >= this.faults / 2
        this.later(slowMs, () => {
          const exit = Effect.runSyncExit(effect)
          if (answered) this.later(random() * 20, onNode(() => resume(exit)))
        })
      })
    const registry: RegistryApi = {
      put: (...put) => call(this.registry.put(...put)),
      remove: (...remove) => call(this.registry.remove(...remove)),
      get: (key) => call(this.registry.get(key)),
      watch: this.registry.watch
    }
    /** Reaches the node late or never; `run` gets a function that answers in the same way. */
    const arrive = (run: () => void): void => {
      const lot = random()
      if (this.nowMs < pingsAtMs || lot < this.faults / 2) return
      this.later(lot < this.faults ? random() * 4_000 : random() * 20, onNode(run))
    }
    const pings: PingsApi = {
      send: (to, text) =>
        Effect.callback((resume) => {
          const listener = this.listeners.get(to)
          if (listener === undefined) return resume(Effect.fail(new PingUnanswered({ name: to })))
          const isSevered = this.nowMs < (this.severedUntilMs.get(`${name} ${listener.name}`) ?? 0)
          if (isSevered || this.nowMs < pingsAtMs) return
          listener.deliver(text, (answer) => arrive(() => resume(Effect.succeed(answer))))
        }),
      listen: () => Effect.void
    }
    const newIncarnation = () => `${name}-${this.incarnations++}`
    const nowMs = () => offsetMs + this.nowMs * rate
    const time = { fork, later, nowMs }
    const known = machine === undefined ? {} : {
      process: { host: machine, pid: this.processes.push(() => alive) - 1 },
      isGone: ({ host, pid }: ProcessName) => host === machine && this.processes[pid]?.() !== true
    }
    const clustered = new ClusterPlacement(registry, pings, time, {
      node: name,
      newIncarnation,
      ...known
    })
    const deliver = (text: string, answered: (answer: string) => void) =>
      arrive(() => {
        const answer = plantedAnswer(this.planted, text, clustered.answerPing)
        if (this.nowMs >= pingsAtMs) answered(answer)
      })
    this.listeners.set(clustered.witnessName, { name, deliver })
    this.watch(clustered.observe, onNode, () => this.nowMs >= reachesAtMs)
    const node: SimulatedNode = {
      name,
      clustered,
      alive: () => alive,
      crash: () => {
        alive = false
        this.listeners.delete(clustered.witnessName)
      },
      pause: (ms) => void (awakeAtMs = Math.max(awakeAtMs, this.nowMs + ms)),
      cutOff: (ms) => {
        node.loseRegistry(ms)
        node.isolate(ms)
      },
      loseRegistry: (ms) => void (reachesAtMs = Math.max(reachesAtMs, this.nowMs + ms)),
      isolate: (ms) => void (pingsAtMs = Math.max(pingsAtMs, this.nowMs + ms)),
      leave: async () => {
        await clustered.placement.leave()
        left = true
        await clustered.close()
        alive = false
      }
    }
    this.nodes.push(node)
    const follow = () =>
      clustered.placement.follow(
        (shard) => {
          this.takes[shard] = (this.takes[shard] ?? 0) + 1
          this.believers[shard]?.add(node)
        },
        (shard) =>
          new Promise((resolve) => {
            if (clustered.placement.owns(shard)) this.violations.push(`${shard} is lost and owned`)
            later(random() * 100, () => {
              this.believers[shard]?.delete(node)
              resolve()
            })
          })
      )
    // A node whose name is taken does not start.
    const enter = async (): Promise<void> => {
      const refused = await clustered.enter()
      if (refused === undefined) follow()
      else if (refused._tag === "StorageUnavailable") {
        // The process ends, and is started again.
        await clustered.close()
        if (!alive || left) return
        alive = false
        this.start(name, machine)
      } else {
        this.refused.push(name)
        alive = false
      }
    }
    void enter()
    return node
  }

  /** Reports changes to a node late and in order; after a disconnection if it is cut off. */
  private watch(
    saw: ClusterPlacement["observe"],
    onNode: (run: () => void) => () => void,
    reaches: () => boolean
  ): void {
    let waiting: Array<RegistryEntry> = []
    let scheduled = false
    const deliver = (): void => {
      scheduled = false
      if (!reaches()) return schedule(200)
      const entries = waiting
      waiting = []
      for (const entry of entries) saw(entry)
    }
    const schedule = (ms: number): void => {
      if (scheduled) return
      scheduled = true
      this.later(ms, onNode(deliver))
    }
    const watch = this.registry.watch((entry) => {
      // A watch may report only the latest of several changes of a key.
      waiting = [...waiting.filter(({ key }) => key !== entry.key), entry]
      schedule(this.random() * (this.random() < this.faults ? 9_000 : 20))
    })
    void Effect.runFork(Effect.scoped(Effect.andThen(watch, Effect.never)))
  }

  private check(): void {
    for (let shard = 0; shard < SHARDS; shard++) {
      const believers = this.believers[shard]
      if (believers === undefined || believers.size < 2) continue
      const owning = [...believers].filter(({ alive, clustered }) =>
        alive() && clustered.placement.owns(shard)
      )
      if (owning.length > 1) {
        const names = owning.map(({ name }) => name).join(" and ")
        this.violations.push(`${this.nowMs}: shard ${shard} is owned by ${names}`)
      }
    }
  }
}
