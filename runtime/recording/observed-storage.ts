/** A storage whose commits are observed. */
import { Effect, Layer } from "effect"
import { type Commit, type CommitOutcome, Storage, type StorageApi } from "../ports/index.ts"

/** The storage, which calls `onCommit` with each commit once it is durable. */
const observedStorage = (
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

/** The storage of the layers below, observed. */
export const observedStorageLayer = (
  onCommit: (commit: Commit) => void
): Layer.Layer<Storage, never, Storage> =>
  Layer.effect(
    Storage,
    Effect.map(Effect.service(Storage), (storage) => observedStorage(storage, onCommit))
  )
