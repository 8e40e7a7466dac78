/**
 * The subjects that nodes talk over, as NATS has them: each message goes to whoever has subscribed,
 * and is lost where nobody has. The nodes' own transport runs on it.
 */
import type { Msg, NatsConnection, PublishOptions } from "@nats-io/transport-node"
import type { Noise } from "./plan.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"

type Callback = (error: null, message: Msg) => void

interface Subscription {
  readonly owner: Wire
  readonly callback: Callback
  readonly key: string
  /** From when on messages of other nodes come here too. */
  readonly knownAtMs: number
}

/**
 * The longest way of a message, and of one that is slow, ms: see
 * `runtime/nats/transport/message-grants.ts`.
 */
const WAY_MS = 15
const SLOW_MS = 400
const KNOWN_MS = 30
/** Servers notice that a node is gone after so long. */
const NOTICED_MS = 5_000

/** `restante.*.<shard>.>`, `<inbox>.*` and plain subjects, and no other patterns. */
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
  // The transport sends headers that it has encoded itself.
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
  /** When the last message of each other node arrives here: they keep their order. */
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

  /** As the transport uses it, and no more. */
  get nc(): NatsConnection {
    return this as unknown as NatsConnection
  }
}

export class Bus {
  noise: Noise
  /** Ways that lead nowhere until then: `<from> <to>`, by names of nodes. */
  readonly cuts = new Map<string, number>()
  /** Messages that were dropped, delayed, doubled, or sent over a cut way. */
  readonly counts = { messages: 0, dropped: 0, slow: 0, doubled: 0, overtaken: 0, cut: 0 }
  private readonly subscriptions = new Map<string, Set<Subscription>>()
  /** Inboxes in the order in which the trace names them: their own names differ from run to run. */
  private readonly inboxes = new Map<string, number>()
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: Noise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  connect(computer: Computer): Wire {
    return new Wire(this, computer)
  }

  /** The process of this connection is gone; the servers notice it after a while. */
  lose(wire: Wire): void {
    this.time.later(this.time.random() * NOTICED_MS, () => {
      for (const subscriptions of this.subscriptions.values()) {
        for (const one of subscriptions) if (one.owner === wire) subscriptions.delete(one)
      }
    })
  }

  add(owner: Wire, pattern: string, callback: Callback): Subscription {
    const key = keyOf(pattern)
    // The word of an inbox goes before what is to be answered there, by the same ways.
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
      return this.trace.note("bus", () => `dropped ${way} ${this.told(subject)}`)
    }
    const message = this.message(to.owner, subject, data, options)
    this.arrive(from, to, message, this.wayMs(noise))
    if (time.random() < noise.doubles) {
      counts.doubled++
      this.trace.note("bus", () => `doubled ${way} ${this.told(subject)}`)
      this.arrive(from, to, message, this.wayMs(noise))
    }
  }

  /** A subject as the trace has it. */
  private told(subject: string): string {
    if (!subject.startsWith("_INBOX.")) return subject
    const [inbox = "", ...rest] = subject.slice("_INBOX.".length).split(/\.(?=[^.]*$)/)
    const number = this.inboxes.get(inbox) ?? this.inboxes.size + 1
    this.inboxes.set(inbox, number)
    return ["_INBOX", number, ...rest].join(".")
  }

  private wayMs({ delays }: Noise): number {
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
    // What the transport uses of a message, and no more.
    const used = { subject, reply, data, headers, string: () => data.toString(), respond }
    return used as unknown as Msg
  }
}
