/**
 * Connections to NATS in memory, on real or virtual timers. Messages of one publisher to one
 * subscriber stay in order. Delays are random, and other publishers learn of subscriptions only
 * after a while.
 */
import type { Msg, NatsConnection, PublishOptions } from "@nats-io/transport-node"

interface Subscription {
  readonly owner: Connection
  readonly tokens: ReadonlyArray<string>
  readonly callback: (error: null, message: Msg) => void
  /** When each publisher learns of it. */
  readonly knownAtMs: Map<Connection, number>
  readonly sinceMs: number
  open: boolean
}

const matches = (tokens: ReadonlyArray<string>, subject: string): boolean => {
  const parts = subject.split(".")
  for (const [at, token] of tokens.entries()) {
    if (token === ">") return parts.length > at
    if (token !== "*" && token !== parts[at]) return false
  }
  return parts.length === tokens.length
}

const headersOf = (options: PublishOptions | undefined, status?: number) => {
  // The transport encodes its headers itself.
  const encoded = options?.headers as { readonly encode?: () => Uint8Array } | undefined
  const lines = Buffer.from(encoded?.encode?.() ?? "").toString().split("\r\n").slice(1)
  const fields = new Map(lines.map((line) => {
    const colon = line.indexOf(": ")
    return [line.slice(0, colon), line.slice(colon + 2)]
  }))
  if (encoded === undefined && status === undefined) return undefined
  return { code: status ?? 0, get: (name: string) => fields.get(name) ?? "" }
}

class Connection {
  closed = false
  private readonly network: Network
  readonly arrivedMs = new Map<Connection, number>()
  /** Messages wait until this time, in their order. */
  standsUntilMs = 0

  constructor(network: Network) {
    this.network = network
  }

  get info() {
    return undefined
  }

  isClosed(): boolean {
    return this.closed
  }

  subscribe(subject: string, { callback }: { callback: Subscription["callback"] }) {
    const subscription = this.network.add(this, subject, callback)
    const end = () => {
      this.network.subscriptions.delete(subscription)
      return Promise.resolve()
    }
    return { drain: end, unsubscribe: end }
  }

  publish(subject: string, data: Uint8Array | string = "", options?: PublishOptions): void {
    if (this.closed) throw new Error("closed")
    this.network.route(this, subject, data, options)
  }
}

export class Network {
  readonly subscriptions = new Set<Subscription>()
  /** Fraction of the messages to actors that are lost on each path. */
  lost = 0
  /** Fraction of the messages that arrive twice. */
  doubled = 0
  private readonly random: () => number
  private readonly wayMs: number
  private readonly knownMs: number

  /** `wayMs`: the greatest delay; `knownMs`: until every node knows a subscription. */
  constructor(random: () => number, wayMs: number, knownMs: number) {
    this.random = random
    this.wayMs = wayMs
    this.knownMs = knownMs
  }

  connect(): NatsConnection {
    // Only the part of a connection that the transport uses.
    return new Connection(this) as unknown as NatsConnection
  }

  /** Kills the process of this connection: it neither receives nor sends messages. */
  kill(nc: NatsConnection): void {
    // Made by `connect`.
    const connection = nc as unknown as Connection
    connection.closed = true
    for (const one of this.subscriptions) {
      if (one.owner === connection) this.subscriptions.delete(one)
    }
  }

  /** Pauses the process of this connection for this time. */
  stand(nc: NatsConnection, forMs: number): void {
    // Made by `connect`.
    const connection = nc as unknown as Connection
    connection.standsUntilMs = performance.now() + forMs
  }

  add(owner: Connection, subject: string, callback: Subscription["callback"]): Subscription {
    const subscription: Subscription = {
      owner,
      tokens: subject.split("."),
      callback,
      knownAtMs: new Map([[owner, 0]]),
      sinceMs: performance.now(),
      open: true
    }
    this.subscriptions.add(subscription)
    return subscription
  }

  route(
    from: Connection,
    subject: string,
    data: Uint8Array | string,
    options: PublishOptions | undefined
  ): void {
    const nowMs = performance.now()
    let nobody = true
    for (const one of this.subscriptions) {
      if (!matches(one.tokens, subject)) continue
      const knownAtMs = one.knownAtMs.get(from) ?? one.sinceMs + this.random() * this.knownMs
      one.knownAtMs.set(from, knownAtMs)
      if (knownAtMs > nowMs) continue
      nobody = false
      if (subject.startsWith("restante.") && this.random() < this.lost) continue
      this.deliver(from, one, this.message(one.owner, subject, data, options))
      if (this.random() < this.doubled) {
        this.deliver(from, one, this.message(one.owner, subject, data, options))
      }
    }
    if (!nobody || options?.reply === undefined) return
    for (const one of this.subscriptions) {
      if (one.owner !== from || !matches(one.tokens, options.reply)) continue
      this.deliver(from, one, this.message(from, options.reply, "", undefined, 503))
    }
  }

  private deliver(from: Connection, { callback, owner }: Subscription, message: Msg): void {
    const atMs = Math.max(
      performance.now() + this.random() ** 3 * this.wayMs,
      owner.standsUntilMs,
      owner.arrivedMs.get(from) ?? 0
    )
    owner.arrivedMs.set(from, atMs + 0.001)
    setTimeout(() => owner.closed || callback(null, message), atMs - performance.now())
  }

  private message(
    owner: Connection,
    subject: string,
    data: Uint8Array | string,
    options: PublishOptions | undefined,
    status?: number
  ): Msg {
    const bytes = Buffer.from(data)
    const reply = options?.reply
    const respond: Msg["respond"] = (payload, given) => {
      if (reply !== undefined) owner.publish(reply, payload, given)
      return reply !== undefined
    }
    const headers = headersOf(options, status)
    // Only the part of a message that the transport uses.
    const used = { subject, reply, data: bytes, headers, string: () => bytes.toString(), respond }
    return used as unknown as Msg
  }
}
