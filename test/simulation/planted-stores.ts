/** Planted bugs in the storage of a node, beneath its runtime. */
import { Effect } from "effect"
import { keyOf, shardOf } from "../../runtime/actor/address.ts"
import { StorageUnavailable } from "../../runtime/actor/errors.ts"
import type { Commit, CommitOutcome, StorageApi, StoredTimer, TimerCursor,
  TimerPage } from "../../runtime/ports/storage.ts"
import type { StorageFailure } from "../../runtime/index.ts"
import type { WorldSeams } from "./world.ts"

type Outcomes = Effect.Effect<ReadonlyArray<CommitOutcome>, StorageFailure>

/** A group has commits of all streams, and ends with its last. */
const settledTogether = (real: StorageApi): StorageApi => {
  const whole = (group: ReadonlyArray<Commit>): Outcomes => {
    const parts = new Map<number, Array<number>>()
    for (const [at, { address }] of group.entries()) {
      const stream = real.streamOf(shardOf(address))
      parts.set(stream, [...parts.get(stream) ?? [], at])
    }
    const outcomes: Array<CommitOutcome> = []
    const each = [...parts.values()].map((part) =>
      Effect.map(real.commit(part.flatMap((at) => group[at] ?? [])), (some) => {
        for (const [index, outcome] of some.entries()) outcomes[part[index] ?? 0] = outcome
      })
    )
    return Effect.as(Effect.all(each, { concurrency: "unbounded" }), outcomes)
  }
  return { ...real, streamOf: () => 0, commit: (group) => whole(group) }
}

/** Nobody hears of a member before the group ends, so its deadline fails those that are stored. */
const settledAtEnd = (real: StorageApi): StorageApi => ({
  ...real,
  commit: (group) => real.commit(group)
})

/** What can never be stored counts as a store that is away. */
export const tooLargeForNow = (real: StorageApi): StorageApi => {
  const later = (outcome: CommitOutcome): CommitOutcome =>
    outcome._tag === "Refused" && outcome.failure._tag === "ValueTooLarge"
      ? { _tag: "Refused", failure: new StorageUnavailable({ detail: outcome.failure.detail }) }
      : outcome
  return {
    ...real,
    commit: (group, report) =>
      Effect.map(
        real.commit(group, report && ((at, outcome) => report(at, later(outcome)))),
        (outcomes) => outcomes.map(later)
      )
  }
}

/** Timers in one read of a store that reads all of a shard. */
const PART = 50

const isAfter = ({ address, atMs }: StoredTimer, { after, atMs: fromMs }: TimerCursor): boolean =>
  atMs > fromMs || (atMs === fromMs && keyOf(address) > after)

/** Each load reads all timers that wait, and an interrupted one begins again. */
const readAll = (real: StorageApi): StorageApi => ({
  ...real,
  timers: (shard, limit, from) =>
    Effect.gen(function*() {
      const all: Array<StoredTimer> = []
      let page: TimerPage | undefined
      do {
        page = yield* real.timers(shard, PART, page?.next)
        all.push(...page.timers)
      } while (page.next !== undefined)
      const own = all.filter(({ signalRevision }) => signalRevision === undefined)
        .filter((one) => from === undefined || isAfter(one, from))
      const timers = own.slice(0, limit)
      const last = own.length > limit ? timers.at(-1) : undefined
      return {
        hasMoreSignals: false,
        next: last && { atMs: last.atMs, after: keyOf(last.address) },
        timers: [...all.filter(({ signalRevision }) => signalRevision !== undefined), ...timers]
      }
    })
})

/** How many times as many timers as it returns a load finds in the order of their keys. */
const FOUND = 4

const byKey = (one: StoredTimer, other: StoredTimer): number =>
  keyOf(one.address) < keyOf(other.address) ? -1 : 1

/** A load finds the timers in the order of their keys, and continues after the last in time. */
const notEarliest = (real: StorageApi): StorageApi => ({
  ...real,
  timers: (shard, limit, from, untilMs) =>
    Effect.map(real.timers(shard, FOUND * limit, from, untilMs), (page) => ({
      ...page,
      timers: [...page.timers].sort(byKey).slice(0, limit)
        .sort((one, other) => one.atMs - other.atMs)
    }))
})

/** The planted bugs by name. */
export const plantedStores: Readonly<Record<string, WorldSeams>> = {
  "settled-together": { storage: settledTogether },
  "settled-at-the-end": { storage: settledAtEnd },
  "timers-all-read": { storage: readAll },
  "timers-not-earliest": { storage: notEarliest }
}
