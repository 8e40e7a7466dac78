/** The timers and signals of a shard that come first, however many there are. */
import type { StoredTimer, TimerPage } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { addressOfTimer, type Bucket, isMarker, listSubjects, pagesOf, readLastOfMany, signalsOf,
  timersOf } from "../stream/index.ts"

/** Keeps the soonest of many. */
export class SoonestTimers {
  private readonly limit: number
  private timers: Array<StoredTimer> = []
  private count = 0

  constructor(limit: number) {
    this.limit = limit
  }

  add(timer: StoredTimer): void {
    this.count++
    this.timers.push(timer)
    if (this.timers.length > 2 * this.limit + 1_000) this.shrink()
  }

  private shrink(): void {
    this.timers.sort((a, b) => a.atMs - b.atMs)
    this.timers = this.timers.slice(0, this.limit)
  }

  result(): TimerPage {
    this.shrink()
    return { timers: this.timers, complete: this.count <= this.limit }
  }
}

export const nextTimers = async (
  nats: NatsApi,
  bucket: Bucket,
  shard: number,
  limit: number
): Promise<TimerPage> => {
  const soonest = new SoonestTimers(limit)
  for (const filter of [timersOf(bucket, shard), signalsOf(bucket, shard)]) {
    const isSignal = filter === signalsOf(bucket, shard)
    for await (const { lastSeq, subjects } of listSubjects(nats, bucket.stream, filter)) {
      for (const page of pagesOf(subjects)) {
        for (const stored of await readLastOfMany(nats, bucket.stream, page, lastSeq)) {
          if (isMarker(stored)) continue
          soonest.add({
            address: addressOfTimer(bucket, stored.subject),
            atMs: Number(stored.text()),
            signalRevision: isSignal ? stored.seq : undefined
          })
        }
      }
    }
  }
  return soonest.result()
}
