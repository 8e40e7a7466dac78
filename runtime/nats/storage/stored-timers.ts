/** The timers of a shard that come first, however many there are. */
import type { Timer, TimerPage } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { addressOfTimer, type Bucket, listSubjects, pagesOf, readLastOfMany,
  timersOf } from "../stream/index.ts"
import { isMarker } from "./actor-entry.ts"

/** Keeps the soonest of many. */
export class SoonestTimers {
  private readonly limit: number
  private kept: Array<Timer> = []
  private count = 0

  constructor(limit: number) {
    this.limit = limit
  }

  add(timer: Timer): void {
    this.count++
    this.kept.push(timer)
    if (this.kept.length > 2 * this.limit + 1_000) this.shrink()
  }

  private shrink(): void {
    this.kept.sort((a, b) => a.atMs - b.atMs)
    this.kept = this.kept.slice(0, this.limit)
  }

  result(): TimerPage {
    this.shrink()
    return { timers: this.kept, complete: this.count <= this.limit }
  }
}

export const nextTimers = async (
  nats: NatsApi,
  place: Bucket,
  shard: number,
  limit: number
): Promise<TimerPage> => {
  const soonest = new SoonestTimers(limit)
  const listing = listSubjects(nats, place.stream, timersOf(place, shard))
  for await (const { lastSeq, subjects } of listing) {
    for (const piece of pagesOf(subjects)) {
      for (const stored of await readLastOfMany(nats, place.stream, piece, lastSeq)) {
        if (isMarker(stored)) continue
        soonest.add({ address: addressOfTimer(place, stored.subject), atMs: Number(stored.text()) })
      }
    }
  }
  return soonest.result()
}
