/**
 * Hints of changes on `restante.changed.<kind>.<id>`, sent at most once. Of several hints about one
 * actor in one turn of the event loop, only the last is sent. Watchers on the announcing node are
 * called directly; the node ignores its own message.
 */
import type { NatsConnection, Subscription } from "@nats-io/transport-node"
import { type Address, keyOf } from "../../actor/index.ts"
import type { HintListener, TransportApi } from "../../ports/index.ts"
import { type Envelopes, nodeNamedBy } from "./envelopes.ts"

interface WatchedActor {
  readonly listeners: Set<HintListener>
  readonly subscription: Subscription
}

export class Hints {
  private readonly nc: NatsConnection
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly watched = new Map<string, WatchedActor>()
  private pending = new Map<string, readonly [Address, string]>()

  constructor(nc: NatsConnection, envelopes: Envelopes, node: string) {
    this.nc = nc
    this.envelopes = envelopes
    this.node = node
  }

  readonly announce: TransportApi["announce"] = (about, hint) => {
    if (this.pending.size === 0) setImmediate(this.flush)
    this.pending.set(keyOf(about), [about, hint])
  }

  readonly watch: TransportApi["watch"] = (about, listener) => {
    const key = keyOf(about)
    // Each call is a separate watch, also with the same function.
    const own: HintListener = (hint) => listener(hint)
    const watched = this.watched.get(key) ?? this.subscribe(about, key)
    watched.listeners.add(own)
    return () => {
      watched.listeners.delete(own)
      if (watched.listeners.size > 0 || this.watched.get(key) !== watched) return
      this.watched.delete(key)
      if (!this.nc.isClosed()) watched.subscription.unsubscribe()
    }
  }

  private subscribe({ id, kind }: Address, key: string): WatchedActor {
    const subscription = this.nc.subscribe(`restante.changed.${kind}.${id}`, {
      callback: (error, message) => {
        if (error !== null || nodeNamedBy(message) === this.node) return
        const envelope = this.envelopes.receive("change", message)
        if (envelope !== undefined) this.notify(key, envelope.text)
      }
    })
    const watched = { listeners: new Set<HintListener>(), subscription }
    this.watched.set(key, watched)
    return watched
  }

  private notify(key: string, hint: string): void {
    for (const listener of [...this.watched.get(key)?.listeners ?? []]) listener(hint)
  }

  private readonly flush = (): void => {
    const { pending } = this
    this.pending = new Map()
    for (const [key, [{ id, kind }, hint]] of pending) {
      this.notify(key, hint)
      if (this.nc.isClosed()) continue
      try {
        const { node } = this
        this.envelopes.publish("change", `restante.changed.${kind}.${id}`, hint, { node })
      } catch {
        // Hints are sent at most once: a closing or full connection loses them.
      }
    }
  }
}
