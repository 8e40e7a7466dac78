/**
 * The live activations of this node. It passivates those that are idle for long, and the least
 * recently used idle ones when there are too many, or too many bytes of large ones (second chance,
 * in order of arrival). Large ones make no room at the cost of small ones, which others may use.
 */
import type { AskFailure } from "../actor/index.ts"
import type { Limits } from "../limits.ts"
import type { Activation } from "./activation.ts"

export class ActivationDirectory {
  private readonly actors = new Map<string, Activation>()
  /** Those of {@link actors} that are large, the sizes by which they count, and their sum. */
  private readonly large = new Map<string, Activation>()
  private readonly bytes = new Map<string, number>()
  private largeBytes = 0
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
    this.evict(this.actors, () => this.actors.size >= this.limits.residentActorsMax)
    if (this.actors.size >= this.limits.activeActorsMax) return false
    this.actors.set(actor.key, actor)
    return true
  }

  /** Counts an activation by its present size; makes room if it is one of many large ones. */
  resize(actor: Activation): void {
    const { bytes, key } = actor
    const isLarge = bytes >= this.limits.largeActorBytesMin
    if ((!isLarge && !this.large.has(key)) || this.actors.get(key) !== actor) return
    this.uncount(key)
    if (!isLarge) return
    this.large.set(key, actor)
    this.bytes.set(key, bytes)
    this.largeBytes += bytes
    this.evictLarge()
  }

  delete(actor: Activation): void {
    if (this.actors.get(actor.key) === actor) this.remove(actor.key)
  }

  /** Ends the activations of a shard, or all; their waiting messages get the failure. */
  end(shard: number | undefined, failure: (actor: Activation) => AskFailure): void {
    for (const actor of this.actors.values()) {
      if (shard !== undefined && actor.shard !== shard) continue
      this.remove(actor.key)
      actor.stop(failure(actor))
    }
  }

  /** Passivates the actors without a message for `idleMs`, and the large ones that are too many. */
  sweep(): void {
    const nowMs = this.monotonicMs()
    for (const actor of this.actors.values()) {
      if (actor.used) this.touch(actor, nowMs)
      else if (actor.idle && nowMs - actor.lastUsedMs >= this.limits.idleMs) this.passivate(actor)
    }
    this.evictLarge()
  }

  /** Passivates the actor with this key, if it is idle; returns whether it was. */
  passivateIdle(key: string): boolean {
    const actor = this.actors.get(key)
    if (actor?.idle !== true) return false
    this.passivate(actor)
    return true
  }

  private evictLarge(): void {
    this.evict(this.large, () => this.largeBytes > this.limits.largeActorsBytesMax)
  }

  /** Passivates idle actors among these, in their order, while there are too many. */
  private evict(actors: Map<string, Activation>, areTooMany: () => boolean): void {
    if (!areTooMany()) return
    const nowMs = this.monotonicMs()
    // The checks are few, so that a busy node does not search for idle actors all the time.
    let checksLeft = this.limits.evictionChecksMax
    for (const [key, actor] of actors) {
      if (!areTooMany() || checksLeft-- === 0) return
      if (actor.idle && !actor.used) this.passivate(actor)
      else {
        if (actor.used) this.touch(actor, nowMs)
        actors.delete(key)
        actors.set(key, actor)
      }
    }
  }

  private touch(actor: Activation, nowMs: number): void {
    actor.used = false
    actor.lastUsedMs = nowMs
  }

  private remove(key: string): void {
    this.actors.delete(key)
    this.uncount(key)
  }

  private uncount(key: string): void {
    if (!this.large.delete(key)) return
    this.largeBytes -= this.bytes.get(key) ?? 0
    this.bytes.delete(key)
  }

  private passivate(actor: Activation): void {
    this.remove(actor.key)
    actor.stop(undefined)
    this.onPassivate(actor)
  }
}
