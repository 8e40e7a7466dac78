/** Many timers that wait in one shard, of notifications that do not exist. */
import { Effect } from "effect"
import { epochMs } from "../../runtime/testing/index.ts"
import { keyOf, shardOf } from "../../runtime/actor/address.ts"
import type { Commit, StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/commit.ts"
import { notificationAt } from "./notifications.ts"

/** So many are due during the run, more than a node loads at once; and when, ms. */
const DUE = 600
const DUE_FROM_MS = 3_000
const DUE_MS = 25_000
/** When the others are due: after the run, one a minute. */
const LATER_FROM_MS = 3 * 60 * 60_000
const LATER_MS = 60_000

/** In a shard that has other notifications, too. */
const idOf = (at: number): string => `out-0=w${at}`

const dueAtMs = (at: number): number =>
  at < DUE
    ? epochMs + DUE_FROM_MS + Math.floor(at * DUE_MS / DUE)
    : epochMs + LATER_FROM_MS + at * LATER_MS

const settingOf = (at: number): Commit =>
  commitOf({ address: notificationAt(idOf(at)), timer: dueAtMs(at) })

/** The same for all runs of a process, since making them takes as long as storing them. */
let settings: ReadonlyArray<Commit> = []

/** Stores this many timers. */
export const fill = (storage: StorageApi, count: number): void => {
  if (settings.length !== count) settings = Array.from({ length: count }, (_, at) => settingOf(at))
  Effect.runSync(storage.commit(settings))
}

/** A timer that was due during the run, and has not ended; undefined if there is none. */
export const leftOver = (storage: StorageApi): string | undefined => {
  const shard = shardOf(notificationAt(idOf(0)))
  const { timers } = Effect.runSync(storage.timers(shard, 2 * DUE))
  const left = timers.find(({ address: { id }, atMs }) =>
    id.startsWith(idOf(0).slice(0, -1)) && atMs < epochMs + LATER_FROM_MS
  )
  return left && keyOf(left.address)
}
