/** Shared functions of the storage contract's cases. */
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import { address } from "../../runtime/actor/address.ts"
import type { LogItem } from "../../runtime/actor/behavior.ts"
import type { Commit, CommitOutcome, StorageApi, TimerCursor } from "../../runtime/ports/storage.ts"
import { alice, commitOf } from "./commit.ts"
import type { Fresh, Harness } from "./harness.ts"

export { alice, commitOf }

export const bob = address("mailbox", "bob")

export const itemsOf = (from: number, to: number): Array<LogItem> =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ n: from + at, value: `item ${from + at}` }))

export const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)

export const revisionOf = (outcome: CommitOutcome | undefined): number => {
  if (outcome?._tag !== "Committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`)
  return outcome.revision
}

export const signalRevisionsOf = (outcome: CommitOutcome | undefined): ReadonlyArray<number> => {
  if (outcome?._tag !== "Committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`)
  return outcome.signalRevisions
}

export const conflictOf = (outcome: CommitOutcome | undefined): object => {
  if (outcome?._tag !== "Conflict") throw new Error(`no conflict: ${JSON.stringify(outcome)}`)
  return { ...outcome.conflict }
}

/** Runs the port's operations on a fresh store for each test. */
export const probeOf = (fresh: Fresh<StorageApi>) => {
  let harness: Harness<StorageApi>
  beforeEach(async () => {
    harness = await fresh()
  })
  afterEach(() => harness.close())

  const commit = (...group: ReadonlyArray<Partial<Commit>>) =>
    run(harness.api.commit(group.map(commitOf)))
  const read = (from = 1, limit = 1_000, of = alice) => run(harness.api.read(of, from, limit))
  const readChars = (from: number, limit: number, charsMax: number) =>
    run(harness.api.read(alice, from, limit, false, charsMax))
  return {
    commit,
    read,
    /** A read that ends with the item that reaches `charsMax` characters. */
    readChars,
    /** Reads in the turn that reports the commit. */
    readAtOnce: (changes: Partial<Commit>, from: number) => {
      const { api } = harness
      return run(Effect.andThen(api.commit([commitOf(changes)]), api.read(alice, from, 10)))
    },
    one: async (changes: Partial<Commit>) => (await commit(changes))[0],
    load: (of = alice) => run(harness.api.load(of)),
    numbers: async (of = alice) => (await read(1, 1_000_000, of)).map(({ n }) => n),
    timers: async (shard: number) => (await run(harness.api.timers(shard, 10_000))).timers,
    earliest: (shard: number, limit: number, from?: TimerCursor, untilMs?: number) =>
      run(harness.api.timers(shard, limit, from, untilMs)),
    scan: (kind: string, after: string | undefined, limit: number) =>
      run(harness.api.scan(kind, after, limit)),
    health: () => run(harness.api.health),
    reopen: async () => {
      harness = await harness.reopen()
    }
  }
}

export type Probe = ReturnType<typeof probeOf>
