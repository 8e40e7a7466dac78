/**
 * The live activations of this node. It passivates those that are idle for long, and the least
 * recently used idle ones when there are too many (second chance, in order of arrival).
 */
import type { AskFailure } from "../actor/index.ts"
import type { Limits } from "../limits.ts"
import type { Activation } from "./activation.ts"

export class ActivationDirectory {
  private readonly actors = new Map<string, Activation>()
  private readonly limits: Limits
  private readonly monotonicMs: () => number
  private readonly onPassivate: (actor: Activation) => void

  constructor(
    limits: Limits,
    monotonicMs: () => number,
    onPassivate: (actor: Activation) => void
  ) {
    this.limits = limits
    this.monotonicMs = monotonicMs
    this.onPassivate = onPassivate
  }

  get(key: string): Activation | undefined {
    return this.actors.get(key)
  }

  values(): IterableIterator<Activation> {
    return this.actors.values()
  }

  /** The actors of one shard. */
  of(shard: number): ReadonlyArray<Activation> {
    return [...this.actors.values()].filter((actor) => actor.shard === shard)
  }

  /** Adds an activation; false when so many are busy that there is no room. */
  add(actor: Activation): boolean {
    if (this.actors.size >= this.limits.residentActorsMax) this.makeRoom()
    if (this.actors.size >= this.limits.activeActorsMax) return false
    this.actors.set(actor.key, actor)
    return true
  }

  delete(actor: Activation): void {
    if (this.actors.get(actor.key) === actor) this.actors.delete(actor.key)
  }

  /** Ends the activations of a shard, or all; their waiting messages get the failure. */
  end(shard: number | undefined, failure: (actor: Activation) => AskFailure): void {
    for (const actor of this.actors.values()) {
      if (shard !== undefined && actor.shard !== shard) continue
      this.actors.delete(actor.key)
      actor.stop(failure(actor))
    }
  }

  /** Passivates the actors without a message for `idleMs`. */
  sweep(): void {
    const nowMs = this.monotonicMs()
    for (const actor of this.actors.values()) {
      if (actor.used) this.touch(actor, nowMs)
      else if (actor.idle && nowMs - actor.lastUsedMs >= this.limits.idleMs) this.passivate(actor)
    }
  }

  private makeRoom(): void {
    const nowMs = this.monotonicMs()
    // The checks are few, so that a busy node does not search for idle actors all the time.
    let checksLeft = this.limits.evictionChecksMax
    for (const [key, actor] of this.actors) {
      if (this.actors.size < this.limits.residentActorsMax || checksLeft-- === 0) return
      if (actor.idle && !actor.used) this.passivate(actor)
      else {
        if (actor.used) this.touch(actor, nowMs)
        this.actors.delete(key)
        this.actors.set(key, actor)
      }
    }
  }

  private touch(actor: Activation, nowMs: number): void {
    actor.used = false
    actor.lastUsedMs = nowMs
  }

  private passivate(actor: Activation): void {
    this.actors.delete(actor.key)
    actor.stop(undefined)
    this.onPassivate(actor)
  }
}
