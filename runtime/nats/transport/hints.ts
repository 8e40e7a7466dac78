/**
 * Hints of changes on `restante.changes`, sent at most once: those of one turn of the event loop as
 * one message, with a line `<kind>/<id> <hint>` for each actor. Of several hints about one actor
 * only the last is sent. A message for each actor would cost as much as a sixth of its commit; so a
 * node that watches an actor receives the hints about all. Watchers on the announcing node are
 * called directly; the node ignores its own message. A message counts once, and for a short time:
 * whoever repeats one would make every watcher read its actor again. Watchers read it from time to
 * time without a hint, too.
 */
import type { NatsConnection, Subscription } from "@nats-io/transport-node"
import { keyOf } from "../../actor/index.ts"
import { answeredKeepMs, bundleCharsMax, receivedHintsMax } from "../../limits.ts"
import type { HintListener, TransportApi } from "../../ports/index.ts"
import { type Envelopes, type EnvelopeSignature, isFresh, nodeNamedBy } from "./envelopes.ts"

const subject = "restante.changes"

/** Received hints: their codes, and when the latest of them was sent. */
interface HintGeneration {
  readonly codes: Set<string>
  latestMs: number
}

const emptyGeneration = (): HintGeneration => ({
  codes: new Set(),
  latestMs: Number.NEGATIVE_INFINITY
})

/**
 * The hints that a node has received, in two generations. A generation ends after `answeredKeepMs`,
 * or with `receivedHintsMax` hints. Those of such an early end may still be fresh when they
 * are forgotten: then none that was sent before their latest counts, as it may be a repeated one.
 */
export class ReceivedHints {
  private current = emptyGeneration()
  private before = emptyGeneration()
  private beganMs = 0
  private forgottenMs = Number.NEGATIVE_INFINITY

  /** The codes that it knows. */
  get size(): number {
    return this.current.codes.size + this.before.codes.size
  }

  /** Whether a hint counts: it is fresh, and was not received before. */
  accept(signature: EnvelopeSignature): boolean {
    const { code, sentAtMs } = signature
    this.rotate()
    const { before, current } = this
    if (!isFresh(signature) || sentAtMs <= this.forgottenMs) return false
    if (current.codes.has(code) || before.codes.has(code)) return false
    current.codes.add(code)
    current.latestMs = Math.max(current.latestMs, sentAtMs)
    return true
  }

  private rotate(): void {
    const nowMs = performance.now()
    const isOver = nowMs - this.beganMs > answeredKeepMs
    if (!isOver && this.current.codes.size < receivedHintsMax) return
    // After the whole time no hint of the generation before is fresh.
    this.forgottenMs = isOver
      ? Number.NEGATIVE_INFINITY
      : Math.max(this.forgottenMs, this.before.latestMs)
    this.before = this.current
    this.current = emptyGeneration()
    this.beganMs = nowMs
  }
}

export class Hints {
  private readonly nc: NatsConnection
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly received = new ReceivedHints()
  /** The listeners of each watched actor, by its key. */
  private readonly watched = new Map<string, Set<HintListener>>()
  /** Only while an actor is watched. */
  private subscription: Subscription | undefined
  /** The last hint of this turn about each actor. */
  private pending = new Map<string, string>()

  constructor(nc: NatsConnection, envelopes: Envelopes, node: string) {
    this.nc = nc
    this.envelopes = envelopes
    this.node = node
  }

  readonly announce: TransportApi["announce"] = (about, hint) => {
    if (this.pending.size === 0) setImmediate(this.flush)
    this.pending.set(keyOf(about), hint)
  }

  readonly watch: TransportApi["watch"] = (about, listener) => {
    const key = keyOf(about)
    // Each call is a separate watch, also with the same function.
    const own: HintListener = (hint) => listener(hint)
    const listeners = this.watched.get(key) ?? new Set()
    listeners.add(own)
    this.watched.set(key, listeners)
    this.subscription ??= this.subscribe()
    return () => {
      listeners.delete(own)
      if (listeners.size > 0 || this.watched.get(key) !== listeners) return
      this.watched.delete(key)
      if (this.watched.size === 0) this.unsubscribe()
    }
  }

  private subscribe(): Subscription {
    return this.nc.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null || nodeNamedBy(message) === this.node) return
        const envelope = this.envelopes.receive("change", message)
        if (envelope === undefined || !this.received.accept(envelope)) return
        for (const line of envelope.text.split("\n")) {
          const space = line.indexOf(" ")
          this.notify(line.slice(0, space), line.slice(space + 1))
        }
      }
    })
  }

  private unsubscribe(): void {
    if (!this.nc.isClosed()) this.subscription?.unsubscribe()
    this.subscription = undefined
  }

  private notify(key: string, hint: string): void {
    const listeners = this.watched.get(key)
    if (listeners !== undefined) { for (const listener of [...listeners]) listener(hint) }
  }

  private readonly flush = (): void => {
    const { pending } = this
    this.pending = new Map()
    let text = ""
    for (const [key, hint] of pending) {
      this.notify(key, hint)
      if (text.length > bundleCharsMax) {
        this.publish(text)
        text = ""
      }
      text += text === "" ? `${key} ${hint}` : `\n${key} ${hint}`
    }
    this.publish(text)
  }

  private publish(text: string): void {
    if (this.nc.isClosed()) return
    try {
      this.envelopes.publish("change", subject, text, { node: this.node })
    } catch {
      // Hints are sent at most once: a closing or full connection loses them.
    }
  }
}
