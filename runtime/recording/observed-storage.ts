/** A storage whose commits are observed. */
import { Effect, Layer } from "effect"
import { type Commit, type CommitOutcome, Storage, type StorageApi } from "../ports/index.ts"

/**
 * Receives each commit that is certainly durable, and the revision of its record. That is the one
 * of `Committed`. It receives no commit whose outcome is indeterminate, though it may be stored.
 */
export type OnCommit = (commit: Commit, revision: number) => void

/** The storage, whose commits `onCommit` receives. */
const observedStorage = (
  storage: StorageApi,
  onCommit: OnCommit
): StorageApi => ({
  ...storage,
  commit: (group, report, isHeld) => {
    const reported = new Set<number>()
    const receive = (at: number, outcome: CommitOutcome): void => {
      if (reported.has(at)) return
      reported.add(at)
      const commit = group[at]
      if (outcome._tag === "Committed" && commit !== undefined) onCommit(commit, outcome.revision)
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
  onCommit: OnCommit
): Layer.Layer<Storage, never, Storage> =>
  Layer.effect(
    Storage,
    Effect.map(Effect.service(Storage), (storage) => observedStorage(storage, onCommit))
  )
