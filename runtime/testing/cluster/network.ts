/**
 * The network between simulated nodes: the ports for messages and pings, over paths that lose,
 * delay and double what they carry. As with the real transport, a node decides each message at most
 * once, however often it arrives.
 */
import { Effect, Layer } from "effect"
import { type Address, AskTimeout, keyOf, NoOwner, shardOf } from "../../actor/index.ts"
import { type HintListener, Pings, type PingsApi, PingUnanswered, type RequestDone, type Serve,
  Transport, type TransportApi } from "../../ports/index.ts"
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import type { NodeNetwork } from "./node-process.ts"
import type { ClusterNoise } from "./noise.ts"

/** The longest delay of a message, and of a slow message, ms. */
const wayMaxMs = 15
const slowMaxMs = 400
/** How long after it begins to serve a shard other nodes may not know the node, ms. */
const knownMaxMs = 30
/** How long other nodes may send to a process that has ended, ms. */
const noticedMaxMs = 5_000
/** How long a caller should wait for a shard to be served, ms. */
const retryAfterMs = 100

/** A process that serves a shard. */
interface ShardServer {
  readonly owner: NetworkLine
  readonly serve: Serve
  /** When other nodes begin to send to it. */
  readonly knownAtMs: number
}

interface Watcher {
  readonly owner: NetworkLine
  readonly listener: HintListener
}

export class SimulatedNetwork {
  noise: ClusterNoise
  /** Paths that are cut until a time: `<from> <to>`, by names of computers. */
  readonly cuts = new Map<string, number>()
  /** A node asks an actor of this shard, which another node may serve. */
  onAsk: (shard: number) => void = () => {}
  /** By shard: its servers, the latest last. */
  private readonly servers = new Map<number, Array<ShardServer>>()
  private readonly watchers = new Map<string, Set<Watcher>>()
  /** By the name of a process: who answers its pings. */
  private readonly answerers = new Map<
    string,
    { readonly owner: NetworkLine; readonly answer: (text: string) => string }
  >()
  private messages = 0
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: ClusterNoise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  connect(computer: Computer): NetworkLine {
    return new NetworkLine(this, this.time, computer)
  }

  /** The process of this connection has ended; others notice after a while. */
  lose(line: NetworkLine): void {
    this.time.later(this.time.random() * noticedMaxMs, () => {
      for (const [shard, servers] of this.servers) {
        this.servers.set(shard, servers.filter(({ owner }) => owner !== line))
      }
      for (const watchers of this.watchers.values()) {
        for (const one of watchers) if (one.owner === line) watchers.delete(one)
      }
      for (const [name, { owner }] of this.answerers) {
        if (owner === line) this.answerers.delete(name)
      }
    })
  }

  /** The server of a shard to which a node sends. */
  serverFor(from: NetworkLine, shard: number): ShardServer | undefined {
    const isKnown = ({ knownAtMs, owner }: ShardServer): boolean =>
      owner === from || knownAtMs <= this.time.nowMs
    return this.servers.get(shard)?.findLast(isKnown)
  }

  addServer(shard: number, owner: NetworkLine, serve: Serve): () => void {
    const knownAtMs = this.time.nowMs + this.time.random() * knownMaxMs
    const server: ShardServer = { owner, serve, knownAtMs }
    this.servers.set(shard, [...this.servers.get(shard) ?? [], server])
    return () => {
      this.servers.set(shard, (this.servers.get(shard) ?? []).filter((one) => one !== server))
    }
  }

  addWatcher(key: string, watcher: Watcher): () => void {
    const watchers = this.watchers.get(key) ?? new Set()
    this.watchers.set(key, watchers.add(watcher))
    return () => void watchers.delete(watcher)
  }

  watchersOf(key: string): ReadonlyArray<Watcher> {
    return [...this.watchers.get(key) ?? []]
  }

  addAnswerer(name: string, owner: NetworkLine, answer: (text: string) => string): () => void {
    this.answerers.set(name, { owner, answer })
    return () => void this.answerers.delete(name)
  }

  answererOf(name: string) {
    return this.answerers.get(name)
  }

  /** A new number for a message. */
  nextMessage(): number {
    return ++this.messages
  }

  /** Runs a function on the computer of `to` when a message arrives there: never, once or twice. */
  carry(from: NetworkLine, to: NetworkLine, what: string, run: () => void): void {
    const { noise, time, trace } = this
    const path = `${from.computer.name} ${to.computer.name}`
    const lot = time.random()
    if ((this.cuts.get(path) ?? 0) > time.nowMs) return trace.note("network", () => `cut ${path}`)
    if (lot < noise.drops) return trace.note("network", () => `dropped ${path} ${what}`)
    this.arrive(from, to, run)
    if (time.random() < noise.doubles) {
      trace.note("network", () => `doubled ${path} ${what}`)
      this.arrive(from, to, run)
    }
  }

  private arrive(from: NetworkLine, to: NetworkLine, run: () => void): void {
    const { noise, time } = this
    const isSlow = time.random() < noise.delays
    const wayMs = isSlow ? time.random() * slowMaxMs : 0.05 + time.random() ** 3 * wayMaxMs
    const lastMs = to.arrivedMs.get(from) ?? 0
    let atMs = time.nowMs + wayMs
    if (atMs < lastMs && time.random() >= noise.overtakes) atMs = lastMs + 0.001
    to.arrivedMs.set(from, Math.max(atMs, lastMs))
    time.on(to.computer, atMs - time.nowMs, run)
  }
}

/** A process's connection to the network. */
export class NetworkLine {
  readonly computer: Computer
  /** Arrival of the last message from each other process, so that messages stay in order. */
  readonly arrivedMs = new Map<NetworkLine, number>()
  private readonly received = new Set<number>()
  private readonly network: SimulatedNetwork
  private readonly time: VirtualTime

  constructor(network: SimulatedNetwork, time: VirtualTime, computer: Computer) {
    this.network = network
    this.time = time
    this.computer = computer
  }

  /** The ports of the process. */
  get layers(): NodeNetwork {
    const transport: TransportApi = {
      request: (to, envelope, deadlineMs, done, trace) =>
        this.request(to, envelope, deadlineMs, done, trace),
      serve: (shard, serve) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => this.network.addServer(shard, this, serve)),
          (end) => Effect.sync(end)
        )),
      announce: (about, hint) => this.announce(about, hint),
      watch: (about, listener) => this.network.addWatcher(keyOf(about), { owner: this, listener })
    }
    const pings: PingsApi = {
      send: (name, text) => this.ping(name, text),
      listen: (name, answer) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => this.network.addAnswerer(name, this, answer)),
          (end) => Effect.sync(end)
        ))
    }
    // A process that ends in good order first answers what is on its way to it.
    const linger = Effect.addFinalizer(() =>
      Effect.promise(() => new Promise((resolve) => setTimeout(resolve, slowMaxMs)))
    )
    return {
      transport: Layer.effect(Transport, Effect.as(linger, transport)),
      pings: Layer.succeed(Pings, pings)
    }
  }

  private request(
    to: Address,
    envelope: string,
    deadlineMs: number,
    done: RequestDone,
    trace: string | undefined
  ): void {
    const { network } = this
    const key = keyOf(to)
    let isDone = false
    const end: RequestDone = (failure, reply) => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      done(failure, reply)
    }
    const timer = setTimeout(() => end(new AskTimeout({ key, deadlineMs }), ""), deadlineMs)
    const endUnowned = (): void => end(new NoOwner({ key, retryAfterMs }), "")
    network.onAsk(shardOf(to))
    const server = network.serverFor(this, shardOf(to))
    if (server === undefined) return void this.time.on(this.computer, wayMaxMs, endUnowned)
    const { owner, serve } = server
    const message = network.nextMessage()
    network.carry(this, owner, `ask ${key}`, () => {
      if (owner.received.has(message)) return
      owner.received.add(message)
      serve(to, envelope, trace).then(
        (reply) =>
          network.carry(
            owner,
            this,
            `answer of ${key}`,
            () => reply === undefined ? endUnowned() : end(undefined, reply)
          ),
        // `serve` never rejects; if it does, the requester waits until its deadline.
        () => {}
      )
    })
  }

  private announce(about: Address, hint: string): void {
    const key = keyOf(about)
    for (const { listener, owner } of this.network.watchersOf(key)) {
      if (owner === this) queueMicrotask(() => listener(hint))
      else this.network.carry(this, owner, `hint of ${key}`, () => listener(hint))
    }
  }

  private ping(name: string, text: string): Effect.Effect<string, PingUnanswered> {
    const { network, time } = this
    return Effect.callback((resume) => {
      const found = network.answererOf(name)
      if (found === undefined) {
        const unanswered = Effect.fail(new PingUnanswered({ name }))
        return void time.on(this.computer, wayMaxMs, () => resume(unanswered))
      }
      const { answer, owner } = found
      network.carry(this, owner, "ping", () => {
        const answered = answer(text)
        network.carry(owner, this, "pong", () => resume(Effect.succeed(answered)))
      })
    })
  }
}
