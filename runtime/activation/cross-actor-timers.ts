/**
 * Timers that one actor set for another. The other decides on its own timer without having
 * seen them, and its commit must not take away what it has not seen: a note is kept from the
 * decision until a timer that fired after the commit has been decided upon.
 */
import { keyOf, shardOf } from "../actor/index.ts"
import type { Timer } from "../ports/index.ts"

/** A timer by another actor; `hint` is what that one said with it. */
export interface CrossActorTimer extends Timer {
  hint: number | undefined
}

interface Given extends Timer {
  readonly hint?: number
}

/** One that says nothing may be about anything: then nothing is known. */
const greatest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : Math.max(one, other)

export class CrossActorTimers {
  private readonly notes = new Map<string, CrossActorTimer>()
  private readonly ripe = new WeakSet<CrossActorTimer>()

  /** Notes a decided timer; the result, no later than any that stands, is to be committed. */
  note({ address, atMs, hint }: Given): CrossActorTimer {
    const key = keyOf(address)
    const before = this.notes.get(key)
    const noted = {
      address,
      atMs: Math.min(atMs, before?.atMs ?? atMs),
      hint: before === undefined ? hint : greatest(hint, before.hint)
    }
    this.notes.set(key, noted)
    return noted
  }

  /** The commit of a noted timer is over: the next timer that is due answers it. */
  ripen(timer: CrossActorTimer): void {
    this.ripe.add(timer)
  }

  /** The commit of a noted timer was lost: it may come, but what it says may not be so. */
  doubt(timer: CrossActorTimer): void {
    timer.hint = undefined
    this.ripe.add(timer)
  }

  /** The time that the actor's own timer must not be later than. */
  standing(key: string): number | undefined {
    return this.notes.size === 0 ? undefined : this.notes.get(key)?.atMs
  }

  /** The time of one that is to come: its commit is over, and it was not yet decided upon. */
  ripeMs(key: string): number | undefined {
    const noted = this.notes.size === 0 ? undefined : this.notes.get(key)
    return noted !== undefined && this.ripe.has(noted) ? noted.atMs : undefined
  }

  /** What a timer that fires now answers. */
  answeredBy(key: string, nowMs: number): CrossActorTimer | undefined {
    const noted = this.notes.get(key)
    return noted !== undefined && noted.atMs <= nowMs && this.ripe.has(noted) ? noted : undefined
  }

  /** The timer that answers this was decided upon. */
  met(timer: CrossActorTimer): void {
    const key = keyOf(timer.address)
    if (this.notes.get(key) === timer) this.notes.delete(key)
  }

  /** Forgets the notes of a shard that this node no longer owns. */
  drop(shard: number): void {
    for (const [key, { address }] of this.notes) {
      if (shardOf(address) === shard) this.notes.delete(key)
    }
  }
}
