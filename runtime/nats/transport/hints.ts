/**
 * Hints of changes over `restante.changed.<kind>.<id>`, at most once: those of one turn of the
 * event loop about one actor are one, the last. Who watches on the node that announces hears it
 * at once, and not a second time by the network.
 */
import type { MsgHdrs, NatsConnection, Subscription } from "@nats-io/transport-node"
import { type Address, keyOf } from "../../actor/index.ts"
import type { HintListener, TransportApi } from "../../ports/index.ts"
import { rawHeaders } from "../connection/index.ts"
import { headersText, nodeHeader } from "./message-grants.ts"

interface Watched {
  readonly listeners: Set<HintListener>
  readonly subscription: Subscription
}

export class Hints {
  private readonly nc: NatsConnection
  private readonly node: string
  private readonly headers: MsgHdrs
  private readonly watched = new Map<string, Watched>()
  private waiting = new Map<string, readonly [Address, string]>()

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.node = node
    this.headers = rawHeaders(headersText(`${nodeHeader}: ${node}\r\n`))
  }

  readonly announce: TransportApi["announce"] = (about, hint) => {
    if (this.waiting.size === 0) setImmediate(this.tell)
    this.waiting.set(keyOf(about), [about, hint])
  }

  readonly watch: TransportApi["watch"] = (about, listener) => {
    const key = keyOf(about)
    // The same function may watch twice: each watch is one of its own.
    const own: HintListener = (hint) => listener(hint)
    const watched = this.watched.get(key) ?? this.begin(about, key)
    watched.listeners.add(own)
    return () => {
      watched.listeners.delete(own)
      if (watched.listeners.size > 0 || this.watched.get(key) !== watched) return
      this.watched.delete(key)
      if (!this.nc.isClosed()) watched.subscription.unsubscribe()
    }
  }

  private begin({ id, kind }: Address, key: string): Watched {
    const subscription = this.nc.subscribe(`restante.changed.${kind}.${id}`, {
      callback: (error, message) => {
        if (error === null && message.headers?.get(nodeHeader) !== this.node) {
          this.hear(key, message.string())
        }
      }
    })
    const watched = { listeners: new Set<HintListener>(), subscription }
    this.watched.set(key, watched)
    return watched
  }

  private hear(key: string, hint: string): void {
    for (const listener of [...this.watched.get(key)?.listeners ?? []]) listener(hint)
  }

  private readonly tell = (): void => {
    const waiting = this.waiting
    this.waiting = new Map()
    for (const [key, [{ id, kind }, hint]] of waiting) {
      this.hear(key, hint)
      if (this.nc.isClosed()) continue
      try {
        this.nc.publish(`restante.changed.${kind}.${id}`, hint, { headers: this.headers })
      } catch {
        // A hint is told at most once: a connection that closes or has no room loses it.
      }
    }
  }
}
