/**
 * The NATS subjects between nodes: the bus delivers each message to all subscribers, and drops it
 * if there are none. The nodes' own transport runs on the bus.
 */
import type { Msg, NatsConnection, PublishOptions } from "@nats-io/transport-node"
import type { ClusterNoise, Computer, Trace, VirtualTime } from "../../runtime/testing/index.ts"

type Callback = (error: null, message: Msg) => void

interface Subscription {
  readonly owner: Wire
  readonly callback: Callback
  readonly key: string
  /** When messages of other nodes begin to arrive here. */
  readonly knownAtMs: number
}

/**
 * The longest delay of a message, and of a slow message, ms: see
 * `runtime/nats/transport/message-grants.ts`.
 */
const WAY_MS = 15
const SLOW_MS = 400
const KNOWN_MS = 30
/** How long the servers take to notice that a node is gone. */
const NOTICED_MS = 5_000

/** Supports `restante.*.<shard>.>`, `<inbox>.*` and plain subjects; no other patterns. */
const keyOf = (pattern: string): string => {
  const parts = pattern.split(".")
  if (parts.at(-1) === ">") return `shard ${parts[2]}`
  return parts.at(-1) === "*" ? `inbox ${pattern.slice(0, -2)}` : pattern
}

/** The keys of the patterns that a subject may match. */
const keysFor = (subject: string): ReadonlyArray<string> => {
  if (!subject.startsWith("restante.")) {
    return [`inbox ${subject.slice(0, subject.lastIndexOf("."))}`]
  }
  const parts = subject.split(".")
  return parts.length === 4 && parts[1] !== "changed" ? [`shard ${parts[2]}`] : [subject]
}

const headersOf = (options: PublishOptions | undefined, status?: number) => {
  // The transport encodes its headers itself.
  const encoded = options?.headers as { readonly encode?: () => Uint8Array } | undefined
  if (encoded === undefined && status === undefined) return undefined
  let fields: Map<string, string> | undefined
  const read = (): Map<string, string> => {
    const lines = Buffer.from(encoded?.encode?.() ?? "").toString("latin1").split("\r\n").slice(1)
    return new Map(lines.map((line) => {
      const colon = line.indexOf(": ")
      return [line.slice(0, colon), line.slice(colon + 2)]
    }))
  }
  return { code: status ?? 0, get: (name: string) => (fields ??= read()).get(name) ?? "" }
}

/** A node's connection. */
export class Wire {
  closed = false
  readonly computer: Computer
  /** Arrival of the last message from each other node, so that messages stay in order. */
  readonly arrivedMs = new Map<Wire, number>()
  private readonly bus: Bus

  constructor(bus: Bus, computer: Computer) {
    this.bus = bus
    this.computer = computer
  }

  get info() {
    return undefined
  }

  isClosed(): boolean {
    return this.closed
  }

  subscribe(pattern: string, { callback }: { callback: Callback }) {
    const subscription = this.bus.add(this, pattern, callback)
    const end = () => {
      this.bus.end(subscription)
      return Promise.resolve()
    }
    return { drain: end, unsubscribe: end }
  }

  publish(subject: string, data: Uint8Array | string = "", options?: PublishOptions): void {
    if (this.closed) throw new Error("closed")
    this.bus.route(this, subject, Buffer.from(data), options)
  }

  /** Only the part of a connection that the transport uses. */
  get nc(): NatsConnection {
    return this as unknown as NatsConnection
  }
}

export class Bus {
  noise: ClusterNoise
  /** Paths that are cut until a time: `<from> <to>`, by names of nodes. */
  readonly cuts = new Map<string, number>()
  /** Messages that were dropped, delayed, duplicated, or sent over a cut path. */
  readonly counts = { messages: 0, dropped: 0, slow: 0, doubled: 0, overtaken: 0, cut: 0 }
  private readonly subscriptions = new Map<string, Set<Subscription>>()
  /** Inboxes in the order of the trace's names for them: their own names differ between runs. */
  private readonly inboxes = new Map<string, number>()
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: ClusterNoise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  connect(computer: Computer): Wire {
    return new Wire(this, computer)
  }

  /** Ends the process of this connection; the servers notice after a while. */
  lose(wire: Wire): void {
    this.time.later(this.time.random() * NOTICED_MS, () => {
      for (const subscriptions of this.subscriptions.values()) {
        for (const one of subscriptions) if (one.owner === wire) subscriptions.delete(one)
      }
    })
  }

  add(owner: Wire, pattern: string, callback: Callback): Subscription {
    const key = keyOf(pattern)
    // The subscription of an inbox travels before the request that is answered there.
    const knownInMs = this.time.random() * (key.startsWith("inbox ") ? 0 : KNOWN_MS)
    const knownAtMs = this.time.nowMs + knownInMs
    const subscription: Subscription = { owner, callback, key, knownAtMs }
    const same = this.subscriptions.get(key) ?? new Set()
    this.subscriptions.set(key, same.add(subscription))
    return subscription
  }

  end(subscription: Subscription): void {
    this.subscriptions.get(subscription.key)?.delete(subscription)
  }

  route(from: Wire, subject: string, data: Buffer, options: PublishOptions | undefined): void {
    const { time } = this
    let nobody = true
    for (const key of keysFor(subject)) {
      for (const one of this.subscriptions.get(key) ?? []) {
        if (one.owner !== from && one.knownAtMs > time.nowMs) continue
        nobody = false
        this.send(from, one, subject, data, options)
      }
    }
    const reply = options?.reply
    if (!nobody || reply === undefined) return
    for (const key of keysFor(reply)) {
      for (const one of this.subscriptions.get(key) ?? []) {
        if (one.owner !== from) continue
        this.arrive(from, one, this.message(from, reply, Buffer.alloc(0), undefined, 503), 1)
      }
    }
  }

  private send(
    from: Wire,
    to: Subscription,
    subject: string,
    data: Buffer,
    options: PublishOptions | undefined
  ): void {
    const { counts, noise, time } = this
    counts.messages++
    const way = `${from.computer.name} ${to.owner.computer.name}`
    const lot = time.random()
    if ((this.cuts.get(way) ?? 0) > time.nowMs) {
      counts.cut++
      return
    }
    if (lot < noise.drops) {
      counts.dropped++
      return this.trace.note("bus", () => `dropped ${way} ${this.reported(subject)}`)
    }
    const message = this.message(to.owner, subject, data, options)
    this.arrive(from, to, message, this.wayMs(noise))
    if (time.random() < noise.doubles) {
      counts.doubled++
      this.trace.note("bus", () => `doubled ${way} ${this.reported(subject)}`)
      this.arrive(from, to, message, this.wayMs(noise))
    }
  }

  /** The name of a subject in the trace. */
  private reported(subject: string): string {
    if (!subject.startsWith("_INBOX.")) return subject
    const [inbox = "", ...rest] = subject.slice("_INBOX.".length).split(/\.(?=[^.]*$)/)
    const number = this.inboxes.get(inbox) ?? this.inboxes.size + 1
    this.inboxes.set(inbox, number)
    return ["_INBOX", number, ...rest].join(".")
  }

  private wayMs({ delays }: ClusterNoise): number {
    const { time } = this
    if (time.random() >= delays) return 0.05 + time.random() ** 3 * WAY_MS
    this.counts.slow++
    return time.random() * SLOW_MS
  }

  private arrive(from: Wire, { callback, owner }: Subscription, message: Msg, wayMs: number): void {
    const { counts, noise, time } = this
    let atMs = time.nowMs + wayMs
    const lastMs = owner.arrivedMs.get(from) ?? 0
    if (atMs < lastMs) {
      if (time.random() < noise.overtakes) counts.overtaken++
      else atMs = lastMs + 0.001
    }
    owner.arrivedMs.set(from, Math.max(atMs, lastMs))
    time.on(owner.computer, atMs - time.nowMs, () => {
      if (!owner.closed) callback(null, message)
    })
  }

  private message(
    owner: Wire,
    subject: string,
    data: Buffer,
    options: PublishOptions | undefined,
    status?: number
  ): Msg {
    const reply = options?.reply
    const respond: Msg["respond"] = (payload, given) => {
      if (reply !== undefined) owner.publish(reply, payload, given)
      return reply !== undefined
    }
    const headers = headersOf(options, status)
    // Only the part of a message that the transport uses.
    const used = { subject, reply, data, headers, string: () => data.toString(), respond }
    return used as unknown as Msg
  }
}
