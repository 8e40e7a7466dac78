/**
 * A commit of more messages than one atomic batch takes. Its items are written first, above a
 * cap in the state's record that keeps them from counting; the last batch writes everything else
 * and lifts the cap. What is broken off leaves items that never count.
 */
import { StorageFull, StorageUnavailable } from "../errors.ts"
import { clearingOf } from "./clearing.ts"
import type { NatsApi } from "./connection.ts"
import type { BucketPlace } from "./keys.ts"
import type { CommitJob } from "./lanes.ts"
import { batchMessagesMax, giveUpMs, groupMessages, retryMs } from "./limits.ts"
import { loadEntry } from "./loading.ts"
import { capPlan, itemPlans, type Plan, uncapPlan, type Work } from "./plan.ts"
import { unavailable, wait } from "./reader.ts"
import { type ActorEntry, isCapped } from "./record.ts"
import { committed, conflict, conflictOf } from "./verdict.ts"
import { isFull, isMoved, type StreamMessage, write, type Written } from "./wire.ts"

interface NotKept {
  readonly written: Exclude<Written, { readonly _tag: "Kept" }>
  /** Whether it was the step by which the commit counts. */
  readonly wasLast: boolean
}

/** The actor after a step, or why it was not kept. */
const step = async (nats: NatsApi, plan: Plan, wasLast: boolean): Promise<ActorEntry | NotKept> => {
  const written = await write(nats, plan.messages)
  return written._tag === "Kept" ? plan.after(written.first) : { written, wasLast }
}

const attempt = async (
  nats: NatsApi,
  place: BucketPlace,
  entry: ActorEntry,
  work: Work
): Promise<ActorEntry | NotKept> => {
  const capped = await step(nats, capPlan(place, entry, work), false)
  if ("written" in capped) return capped
  for (const messages of itemPlans(place, capped, work, groupMessages)) {
    const written = await write(nats, messages)
    if (written._tag !== "Kept") return { written, wasLast: false }
  }
  return step(nats, uncapPlan(place, entry, capped, work), true)
}

/** While leaders change, a write may be refused as moved that was kept. */
const mayBeKept = ({ wasLast, written }: NotKept): boolean =>
  wasLast && (written._tag === "Unknown" || isMoved(written.code))

const tooLarge = (messages: ReadonlyArray<StreamMessage>): StorageFull | undefined =>
  messages.length <= batchMessagesMax
    ? undefined
    : new StorageFull({
      detail: `a commit changes ${messages.length} keys beside the items that it appends; ` +
        `the servers take ${batchMessagesMax} at once`
    })

/** Writes and tells the job what has become of it; never rejects. */
export const writeLarge = async (
  nats: NatsApi,
  place: BucketPlace,
  job: CommitJob
): Promise<void> => {
  const { commit, id } = job
  let isUnsure = false
  while (!job.abandoned) {
    try {
      const entry = await loadEntry(nats, place, commit.address)
      if (entry.commit === id && !isCapped(entry)) {
        return job.done(committed(commit, entry.revision))
      }
      const found = conflictOf(entry, commit)
      if (found !== undefined) return job.done(isUnsure ? { _tag: "Unsure" } : conflict(found))
      const work = { ...job, clearing: await clearingOf(nats, place, entry, commit, true) }
      const refusal = tooLarge(uncapPlan(place, entry, entry, work).messages)
      if (refusal !== undefined) return job.failed(refusal)
      const outcome = await attempt(nats, place, entry, work)
      if (!("written" in outcome)) return job.done(committed(commit, outcome.revision))
      const { written, written: { detail } } = outcome
      isUnsure ||= mayBeKept(outcome)
      job.doubtful ||= written._tag === "Unknown"
      const full = written._tag === "Refused" && isFull(written.code)
      const isOver = full || performance.now() - job.sinceMs > giveUpMs
      if (isOver && !job.doubtful) {
        return job.failed(full ? new StorageFull({ detail }) : new StorageUnavailable({ detail }))
      }
    } catch (error) {
      if (nats.nc.isClosed()) return job.broken(error)
      if (!job.doubtful) return job.failed(unavailable(error))
    }
    await wait(retryMs)
  }
}
