/** A store whose commits the inspector sees. */
import { Effect, Layer } from "effect"
import type { Store } from "../definition/index.ts"
import { type Commit, type CommitOutcome, Storage, type StorageApi } from "../ports/index.ts"

/** The storage, which calls `onCommit` with each commit once it is durable. */
export const observedStorage = (
  storage: StorageApi,
  onCommit: (commit: Commit) => void
): StorageApi => ({
  ...storage,
  commit: (group, report, isHeld) => {
    const reported = new Set<number>()
    const receive = (at: number, outcome: CommitOutcome): void => {
      if (reported.has(at)) return
      reported.add(at)
      const commit = group[at]
      if (outcome._tag === "Committed" && commit !== undefined) onCommit(commit)
    }
    const receiveAndReport = (at: number, outcome: CommitOutcome): void => {
      receive(at, outcome)
      report?.(at, outcome)
    }
    return storage.commit(group, receiveAndReport, isHeld).pipe(
      Effect.tap((outcomes) => Effect.sync(() => outcomes.forEach((one, at) => receive(at, one))))
    )
  }
})

/** The store, with a storage that is observed. */
export const observedStore = (store: Store, onCommit: (commit: Commit) => void): Store => ({
  ...store,
  ports: Layer.provideMerge(
    Layer.effect(Storage, Effect.map(Storage, (storage) => observedStorage(storage, onCommit))),
    store.ports
  )
})
