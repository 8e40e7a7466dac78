/**
 * The signals of a shard, and its own timers in order of time, out of any number.
 *
 * Own timers are found by the names of their keys alone. The leader lists the names under a
 * wildcard from memory, at a cost of what it lists; to read the messages it may have to load all
 * blocks of the stream (measured: 3 s for 400 of a million). So a marker looks like a timer. This
 * node knows the timers that it ended; one that another node ended fires once more, if its marker
 * is listed within the second that it lives.
 */
import { endedTimerKeepMs, timerBlockMs, timerSearchMs, timersNearMs,
  timersNextBlockMs } from "../../limits.ts"
import type { StoredTimer, TimerCursor, TimerPage } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { addressOfSignal, type Bucket, firstKeyOf, isMarker, listSubjects, pagesOf, parseTimerKey,
  placeEnd, placeOf, readLastOfMany, signalsOf, timeOfPlace, timersFilter,
  timersPrefix } from "../stream/index.ts"
import type { TimerChange } from "./commit-plan.ts"

/** `places` consecutive places from `place`: a power of ten, of which `place` is a multiple. */
export interface PlaceBlock {
  readonly place: number
  readonly places: number
}

/**
 * Blocks that cover the places from `from` up to `end`, in order; those of one step have the same
 * size. A block begins at a multiple of its size, so the first blocks may be small. They have at
 * most `first` places, a power of ten, and ten times as many after ten blocks of that size.
 */
export function* coveringBlocks(
  from: number,
  end: number,
  first = Infinity
): Generator<ReadonlyArray<PlaceBlock>> {
  let step: Array<PlaceBlock> = []
  let most = first
  for (let place = from; place < end;) {
    let places = 1
    while (places < most && place % (10 * places) === 0 && place + 10 * places <= end) {
      places *= 10
    }
    if (places === most && step.length >= 10) {
      most *= 10
      continue
    }
    if (step.length > 0 && step[0]?.places !== places) {
      yield step
      step = []
    }
    step.push({ place, places })
    place += places
  }
  if (step.length > 0) yield step
}

/** Blocks of `places` places from `from` up to `end`: one, and then as many as all before. */
function* doublingBlocks(
  from: number,
  end: number,
  places: number
): Generator<ReadonlyArray<PlaceBlock>> {
  for (let place = from, count = 1; place < end;) {
    const step: Array<PlaceBlock> = []
    for (; step.length < count && place < end; place += places) step.push({ place, places })
    yield step
    count = Math.max(1, (place - from) / places)
  }
}

/**
 * Blocks from `from` up to `end`, both multiples of `timerBlockMs`, for a search that begins before
 * the present. The servers list all names of a block, and one hour may have a million. So blocks
 * from the present on are small. With `grain` they have at most `grain` places. Without it (the
 * number of timers is unknown) the first has the size `timersNextBlockMs`, the next ones
 * `timerBlockMs`.
 */
export function* blocksNear(
  nowMs: number,
  from: number,
  end: number,
  grain?: number
): Generator<ReadonlyArray<PlaceBlock>> {
  const clamped = (atMs: number, blockMs: number): number =>
    Math.min(end, Math.max(from, placeOf(Math.floor(atMs / blockMs) * blockMs)))
  const next = clamped(nowMs, timersNextBlockMs)
  const near = clamped(nowMs + 2 * timerBlockMs, timerBlockMs)
  const far = clamped(nowMs + timersNearMs, timerBlockMs)
  yield* coveringBlocks(from, next)
  if (grain !== undefined) return yield* coveringBlocks(next, end, grain)
  yield* doublingBlocks(next, near, placeOf(timersNextBlockMs))
  yield* doublingBlocks(near, far, placeOf(timerBlockMs))
  yield* coveringBlocks(far, end)
}

/** The timers to find of one shard. */
interface TimerSearch {
  readonly shard: number
  readonly limit: number
  readonly from: TimerCursor | undefined
  readonly untilMs: number
  /** The caller no longer waits. */
  readonly signal: AbortSignal
}

/** A power of ten, about a tenth of the places that a page spans. */
const grainOf = (spanMs: number): number =>
  10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, placeOf(spanMs) / 10))))

/** Timers in each place from the first one found up to `next`; 0: none is found. */
const densityOf = ([first, ...others]: ReadonlyArray<StoredTimer>, next: number): number =>
  first === undefined ? 0 : (1 + others.length) / Math.max(1, next - placeOf(first.atMs))

/**
 * How many large blocks to list at once for `left` timers, where each has about `expected`. Until
 * one is found, as many as the `before` that had none: each of the next may have thousands.
 */
const blocksFor = (left: number, expected: number, before: number): number =>
  expected === 0 ? before : Math.ceil(left / expected)

const startOf = (from: TimerCursor | undefined): number => {
  if (from === undefined) return 0
  return from.after === "" ? placeOf(from.atMs) : parseTimerKey(from.after).place
}

/** Lists the timers of one bucket. */
export class TimerLister {
  private readonly nats: NatsApi
  private readonly bucket: Bucket
  /** Keys that this node ended, and the monotonic time when each is forgotten; in order. */
  private readonly ended = new Map<string, number>()
  /** The size of blocks that have about a tenth of a page, of each shard. */
  private readonly grains = new Map<number, number>()

  constructor(nats: NatsApi, bucket: Bucket) {
    this.nats = nats
    this.bucket = bucket
  }

  /** A commit is stored: the markers of the keys that it ended are still listed. */
  note({ ended, set }: TimerChange): void {
    const nowMs = performance.now()
    if (set !== undefined) this.ended.delete(set)
    for (const key of ended) {
      this.ended.delete(key)
      this.ended.set(key, nowMs + endedTimerKeepMs)
    }
    for (const [key, untilMs] of this.ended) {
      if (untilMs > nowMs) break
      this.ended.delete(key)
    }
  }

  /** See the port's `timers`. */
  async next(search: TimerSearch): Promise<TimerPage> {
    const { limit } = search
    const minSeq = (await this.nats.readBarrier(this.bucket.stream))?.seq ?? 0
    const [own, signals] = await Promise.all([
      this.ownTimers(search, minSeq),
      this.signals(search, minSeq, limit + 1)
    ])
    return {
      timers: [...signals.slice(0, limit), ...own.timers].sort((a, b) => a.atMs - b.atMs),
      next: own.next,
      hasMoreSignals: signals.length > limit
    }
  }

  private async ownTimers(
    search: TimerSearch,
    minSeq: number
  ): Promise<Pick<TimerPage, "next" | "timers">> {
    const { from, limit, shard, signal, untilMs } = search
    const startedMs = performance.now()
    const roundMs = Math.ceil(untilMs / timerBlockMs) * timerBlockMs
    const end = Math.min(placeOf(roundMs), placeEnd)
    const grain = this.grains.get(shard)
    const unit = grain ?? placeOf(timerBlockMs)
    const start = Math.floor(startOf(from) / unit) * unit
    const steps = grain === undefined || from === undefined
      ? blocksNear(Date.now(), start, end, grain)
      : coveringBlocks(start, end, grain)
    const timers: Array<StoredTimer> = []
    let next = start
    for (const step of steps) {
      for (let at = 0; at < step.length;) {
        const left = limit - timers.length
        const places = step[at]?.places ?? 1
        const isLarge = grain !== undefined && places > grain
        const needed = isLarge ? blocksFor(left, places * densityOf(timers, next), at) : Infinity
        const blocks = step.slice(at, at + Math.max(1, needed))
        at += blocks.length
        const found = await Promise.all(
          blocks.map((block) => this.keys(search, block, minSeq, left))
        )
        for (const key of found.flat()) {
          const { address, atMs } = parseTimerKey(key)
          timers.push({ address, atMs, signalRevision: undefined })
          if (timers.length < limit) continue
          this.grains.set(shard, grainOf(atMs - (timers[0]?.atMs ?? atMs)))
          return { timers, next: { atMs, after: key } }
        }
        signal.throwIfAborted()
        next += blocks.length * places
        // What was found is not lost when the search takes long; places of one ms are not split.
        const isLate = performance.now() - startedMs > timerSearchMs && next % placeOf(1) === 0
        if (isLate && next < end) return { timers, next: { atMs: timeOfPlace(next), after: "" } }
      }
    }
    return { timers, next: end === placeEnd ? undefined : { atMs: timeOfPlace(end), after: "" } }
  }

  /** At most `max` keys of a block, without their prefix, in order, after the cursor. */
  private async keys(
    { from, shard }: TimerSearch,
    { place, places }: PlaceBlock,
    minSeq: number,
    max: number
  ): Promise<ReadonlyArray<string>> {
    const { bucket, ended, nats } = this
    const { length } = timersPrefix(bucket, shard)
    // "" is before all keys of the cursor's time.
    const after = from === undefined ? "" : from.after || firstKeyOf(from.atMs)
    const keys: Array<string> = []
    const filter = timersFilter(bucket, shard, place, places)
    for await (const { subjects } of listSubjects(nats, bucket.stream, filter, minSeq)) {
      for (const subject of subjects) {
        const key = subject.slice(length)
        if (key > after && !ended.has(subject)) keys.push(key)
        if (keys.length === max) return keys
      }
    }
    return keys
  }

  /** Up to `max` signals; they are due at once, so their keys are not in order of time. */
  private async signals(
    { shard, signal }: TimerSearch,
    minSeq: number,
    max: number
  ): Promise<Array<StoredTimer>> {
    const { bucket, nats } = this
    const signals: Array<StoredTimer> = []
    const pages = listSubjects(nats, bucket.stream, signalsOf(bucket, shard), minSeq)
    for await (const { lastSeq, subjects } of pages) {
      for (const page of pagesOf(subjects)) {
        signal.throwIfAborted()
        for (const stored of await readLastOfMany(nats, bucket.stream, page, lastSeq)) {
          if (isMarker(stored)) continue
          signals.push({
            address: addressOfSignal(bucket, stored.subject),
            atMs: Number(stored.text()),
            signalRevision: stored.seq
          })
        }
        if (signals.length >= max) return signals
      }
    }
    return signals
  }
}
