/**
 * The actors of this node that are in memory. Those idle for long are put to sleep, and the
 * least recently used idle ones when there are too many (second chance, in order of arrival).
 */
import type { AskFailure } from "../actor/index.ts"
import type { Limits } from "../limits.ts"
import type { Activation } from "./activation.ts"

export class ActivationDirectory {
  private readonly actors = new Map<string, Activation>()
  private readonly limits: Limits
  private readonly nowMs: () => number
  private readonly onSleep: (actor: Activation) => void

  constructor(limits: Limits, nowMs: () => number, onSleep: (actor: Activation) => void) {
    this.limits = limits
    this.nowMs = nowMs
    this.onSleep = onSleep
  }

  get size(): number {
    return this.actors.size
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

  /** Takes an actor in, unless so many are busy that there is no room: then false. */
  add(actor: Activation): boolean {
    if (this.actors.size >= this.limits.residentActorsMax) this.makeRoom()
    if (this.actors.size >= this.limits.activeActorsMax) return false
    this.actors.set(actor.key, actor)
    return true
  }

  delete(actor: Activation): void {
    if (this.actors.get(actor.key) === actor) this.actors.delete(actor.key)
  }

  /** Ends the actors of a shard, or all; what waits in them gets the failure. */
  end(shard: number | undefined, failure: (actor: Activation) => AskFailure): void {
    for (const actor of this.actors.values()) {
      if (shard !== undefined && actor.shard !== shard) continue
      this.actors.delete(actor.key)
      actor.stop(failure(actor))
    }
  }

  /** Puts to sleep what got no message since `idleMs`. */
  sweep(): void {
    const nowMs = this.nowMs()
    for (const actor of this.actors.values()) {
      // A clock that went backwards must not keep it awake.
      if (actor.used || actor.lastUsedMs > nowMs) this.touch(actor, nowMs)
      else if (actor.idle && nowMs - actor.lastUsedMs >= this.limits.idleMs) this.sleep(actor)
    }
  }

  private makeRoom(): void {
    const nowMs = this.nowMs()
    // The looks are few, so that a busy node does not search for idle actors all the time.
    let looks = this.limits.evictionChecksMax
    for (const [key, actor] of this.actors) {
      if (this.actors.size < this.limits.residentActorsMax || looks-- === 0) return
      if (actor.idle && !actor.used) this.sleep(actor)
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

  private sleep(actor: Activation): void {
    this.actors.delete(actor.key)
    actor.stop(undefined)
    this.onSleep(actor)
  }
}
