/**
 * Commits into one bucket, at most one of each actor under way. A member at fault is taken out of
 * its batch, and what the servers did not acknowledge is settled by asking the leader, before
 * anything is said of it.
 */
import { StorageFull, StorageUnavailable } from "../../actor/index.ts"
import { batchMessagesMax, batchTargetMessages, cachedStateCharsMax, giveUpMs,
  retryDelayMs } from "../../limits.ts"
import type { Commit } from "../../ports/index.ts"
import { asStorageUnavailable, type NatsApi, wait } from "../connection/index.ts"
import { actorKeys, type Bucket, callApi, isFull, isSequenceConflict, type NotStored,
  readLastFromLeader, type StreamMessage, write } from "../stream/index.ts"
import { type ActorEntry, isCapped } from "./actor-entry.ts"
import { commitOfKey, loadEntry } from "./actor-log.ts"
import { type ActorQueue, type BatchMember, CommitBatcher,
  type CommitJob } from "./commit-batcher.ts"
import { capPlan, type CommitPlan, committed, type CommitWork, conflict, conflictAfterReload,
  conflictOf, itemPlans, mayBeOverwritten, needsPurge, planCommit,
  uncapPlan } from "./commit-plan.ts"
import { type LogTrim, noTrim, planTrim } from "./log-clearer.ts"

interface NotKept {
  readonly written: NotStored
  /** Whether it was the step by which the commit counts. */
  readonly wasLast: boolean
}

/** The actor after a step, or why it was not kept. */
const step = async (
  nats: NatsApi,
  plan: CommitPlan,
  wasLast: boolean
): Promise<ActorEntry | NotKept> => {
  const written = await write(nats, plan.messages)
  return written._tag === "Stored" ? plan.after(written.first) : { written, wasLast }
}

const attempt = async (
  nats: NatsApi,
  place: Bucket,
  entry: ActorEntry,
  work: CommitWork
): Promise<ActorEntry | NotKept> => {
  const capped = await step(nats, capPlan(place, entry, work), false)
  if ("written" in capped) return capped
  for (const messages of itemPlans(place, capped, work, batchTargetMessages)) {
    const written = await write(nats, messages)
    if (written._tag !== "Stored") return { written, wasLast: false }
  }
  return step(nats, uncapPlan(place, entry, capped, work), true)
}

/** While leaders change, a write may be refused as moved that was kept. */
const mayBeKept = ({ wasLast, written }: NotKept): boolean =>
  wasLast && (written._tag === "Indeterminate" || isSequenceConflict(written.code))

const tooLarge = (messages: ReadonlyArray<StreamMessage>): StorageFull | undefined =>
  messages.length <= batchMessagesMax
    ? undefined
    : new StorageFull({
      detail: `a commit changes ${messages.length} keys beside the items that it appends; ` +
        `the servers take ${batchMessagesMax} at once`
    })

/** Writes and tells the job what has become of it; never rejects. */
export const writeLargeCommit = async (
  nats: NatsApi,
  place: Bucket,
  job: CommitJob
): Promise<void> => {
  const { commit, id } = job
  let isUnsure = false
  while (!job.abandoned) {
    try {
      const entry = await loadEntry(nats, place, commit.address)
      if (entry.commit === id && !isCapped(entry)) {
        return job.done(committed(commit, entry.revision, Number.NaN))
      }
      const found = conflictOf(entry, commit)
      if (found !== undefined) {
        return job.done(isUnsure ? { _tag: "Indeterminate" } : conflict(found))
      }
      const work = { ...job, clearing: await planTrim(nats, place, entry, commit, true) }
      const refusal = tooLarge(uncapPlan(place, entry, entry, work).messages)
      if (refusal !== undefined) return job.failed(refusal)
      const outcome = await attempt(nats, place, entry, work)
      if (!("written" in outcome)) {
        return job.done(committed(commit, outcome.revision, Number.NaN))
      }
      const { written, written: { detail } } = outcome
      isUnsure ||= mayBeKept(outcome)
      job.mayBeStored ||= written._tag === "Indeterminate"
      const full = isFull(written)
      const isOver = full || performance.now() - job.sinceMs > giveUpMs
      if (isOver && !job.mayBeStored) {
        return job.failed(full ? new StorageFull({ detail }) : new StorageUnavailable({ detail }))
      }
    } catch (error) {
      if (nats.nc.isClosed()) return job.broken(error)
      if (!job.mayBeStored) return job.failed(asStorageUnavailable(error))
    }
    await wait(retryDelayMs)
  }
}

/*
 * A commit of more messages than one atomic batch takes. Its items are written first, above a
 * cap in the state's record that keeps them from counting; the last batch writes everything else
 * and lifts the cap. What is broken off leaves items that never count.
 */

export class BucketWriter {
  readonly place: Bucket
  private readonly nats: NatsApi
  private readonly outbox: CommitBatcher

  constructor(nats: NatsApi, place: Bucket) {
    this.nats = nats
    this.place = place
    this.outbox = new CommitBatcher(nats, {
      written: (members, written) => {
        if (written._tag === "Stored") this.kept(members, written.first)
        else void this.settle(members, written)
      },
      dropped: ({ lane }) => this.next(lane)
    })
  }

  submit(lane: ActorQueue, job: CommitJob): void {
    lane.waiting.push(job)
    if (!lane.busy) this.next(lane)
  }

  /** Reads the actor anew once its commits under way are done with. */
  async load(lane: ActorQueue): Promise<ActorEntry> {
    while (lane.busy) await new Promise<void>((resolve) => lane.idle.push(resolve))
    lane.busy = true
    try {
      const entry = await this.reload(lane)
      // It is read again for the commit that needs it.
      if ((entry.text?.length ?? 0) > cachedStateCharsMax) lane.entry = undefined
      return entry
    } finally {
      this.next(lane)
    }
  }

  private async reload(lane: ActorQueue): Promise<ActorEntry> {
    const { address } = lane
    const known = lane.entry
    lane.entry = undefined
    const fresh = await loadEntry(this.nats, this.place, address)
    if (fresh.floor > 0) void this.purge(address, fresh.floor)
    const isSame = known?.isFenced === true && known.seq === fresh.seq && known.head === fresh.head
    lane.entry = isSame ? { ...fresh, text: undefined, isFenced: true } : fresh
    return fresh
  }

  private next(lane: ActorQueue): void {
    lane.busy = false
    for (let job = lane.waiting.shift(); job !== undefined; job = lane.waiting.shift()) {
      if (job.abandoned) continue
      lane.busy = true
      this.start(lane, job)
      return
    }
    for (const resolve of lane.idle.splice(0)) resolve()
  }

  private start(lane: ActorQueue, job: CommitJob): void {
    if (lane.entry === undefined) void this.restart(lane, job)
    else this.prepare(lane, job, lane.entry)
  }

  private async restart(lane: ActorQueue, job: CommitJob): Promise<void> {
    job.isReloaded = true
    try {
      await this.reload(lane)
    } catch (error) {
      return this.finish(lane, job, () => job.failed(asStorageUnavailable(error)))
    }
    this.start(lane, job)
  }

  private prepare(lane: ActorQueue, job: CommitJob, entry: ActorEntry): void {
    const { commit } = job
    const found = conflictOf(entry, commit)
    if (found !== undefined) {
      if (!job.isReloaded) return void this.restart(lane, job)
      return this.finish(lane, job, () => job.done(conflict(found)))
    }
    if (commit.remove.length === 0) this.add(lane, job, entry, noTrim(entry))
    else void this.clear(lane, job, entry)
  }

  /** Looks at the messages that hold the items which the commit removes. */
  private async clear(lane: ActorQueue, job: CommitJob, entry: ActorEntry): Promise<void> {
    try {
      this.add(lane, job, entry, await planTrim(this.nats, this.place, entry, job.commit))
    } catch (error) {
      this.finish(lane, job, () => job.failed(asStorageUnavailable(error)))
    }
  }

  private add(lane: ActorQueue, job: CommitJob, entry: ActorEntry, clearing: LogTrim): void {
    const plan = planCommit(this.place, entry, { ...job, clearing })
    if (plan.messages.length === 0) {
      return this.finish(
        lane,
        job,
        () => job.done(committed(job.commit, entry.revision, Number.NaN))
      )
    }
    if (plan.messages.length > batchMessagesMax) return void this.large(lane, job)
    this.outbox.add({ lane, job, entry, plan, readyMs: performance.now() })
  }

  private async large(lane: ActorQueue, job: CommitJob): Promise<void> {
    lane.entry = undefined
    await writeLargeCommit(this.nats, this.place, job)
    this.next(lane)
  }

  private finish(lane: ActorQueue, job: CommitJob, tell: () => void): void {
    try {
      tell()
    } catch (defect) {
      job.broken(defect)
    }
    this.next(lane)
  }

  private kept(members: ReadonlyArray<BatchMember>, from: number): void {
    let first = from
    for (const { job, lane, plan } of members) {
      this.concluded(lane, job, plan.after(first), undefined, first + plan.signalsAt)
      first += plan.messages.length
    }
  }

  /**
   * The commit was kept, and left the actor like this, at this revision; `firstSignal` as in
   * {@link committed}.
   */
  private concluded(
    lane: ActorQueue,
    job: CommitJob,
    entry: ActorEntry,
    revision = entry.revision,
    firstSignal = Number.NaN
  ): void {
    const { commit } = job
    // Whoever is told of it may read at once. The mark of a removal fades or is purged, so that its
    // sequence will not stay.
    lane.entry = commit.state === null ? undefined : entry
    job.done(committed(commit, revision, firstSignal))
    if (commit.state !== null) return this.next(lane)
    if (!needsPurge(entry)) return this.next(lane)
    void this.purge(commit.address, entry.floor).then(() => this.next(lane))
  }

  /** Takes what a removed actor left. Until then its items are known by their sequence. */
  private async purge(address: CommitJob["commit"]["address"], upTo: number): Promise<void> {
    const { all } = actorKeys(this.place, address)
    await callApi(this.nats, `STREAM.PURGE.${this.place.stream}`, { filter: all, seq: upTo + 1 })
      .catch(() => undefined)
  }

  private async settle(
    members: ReadonlyArray<BatchMember>,
    written: NotStored
  ): Promise<void> {
    const { _tag, detail } = written
    const code = written._tag === "Rejected" ? written.code : undefined
    for (const { job } of members) {
      job.tries++
      if (_tag === "Indeterminate") job.mayBeStored = true
    }
    // Another sequence than expected is certain; all else may pass.
    if (code !== 10_071) await wait(retryDelayMs)
    const asks = code === undefined || isSequenceConflict(code)
    const failure = isFull(written)
      ? new StorageFull({ detail })
      : new StorageUnavailable({ detail })
    await Promise.all(members.map(async (member) => {
      const { job, lane } = member
      if (job.abandoned) {
        lane.entry = undefined
        return this.next(lane)
      }
      const isOver = failure._tag === "StorageFull" ||
        performance.now() - job.sinceMs > giveUpMs
      if (isOver && !job.mayBeStored) return this.finish(lane, job, () => job.failed(failure))
      if (asks || job.mayBeStored) return this.examine(member)
      this.outbox.add(member)
    }))
  }

  /** Asks the leader what has become of a commit, and of its actor. */
  private async examine(
    { entry, job, lane }: Pick<BatchMember, "entry" | "job" | "lane">
  ): Promise<void> {
    const { commit } = job
    let fresh: ActorEntry
    let clearing: LogTrim
    let wasKept: boolean
    let consumedSignal: number | undefined
    try {
      lane.entry = undefined
      fresh = await loadEntry(this.nats, this.place, commit.address)
      // Of a refusal too: while leaders change one may be told of what was kept after all.
      wasKept = await this.wasKept(job, fresh)
      clearing = await planTrim(this.nats, this.place, fresh, commit)
      consumedSignal = await this.removableSignal(commit)
    } catch (error) {
      return this.unanswered({ entry, job, lane }, error)
    }
    if (wasKept) {
      // Where another wrote since, nothing that is decided upon this commit may be written.
      const revision = fresh.commit === job.id ? fresh.revision : Number.NaN
      return this.concluded(lane, job, { ...fresh, isFenced: false }, revision)
    }
    const found = conflictAfterReload(entry, fresh, commit)
    lane.entry = fresh
    if (found !== undefined) {
      const isUnsure = job.mayBeStored && mayBeOverwritten(entry, fresh, commit)
      return this.finish(
        lane,
        job,
        () => job.done(isUnsure ? { _tag: "Indeterminate" } : conflict(found))
      )
    }
    const remaining = { ...commit, consumedSignal }
    const plan = planCommit(this.place, fresh, { ...job, commit: remaining, clearing })
    this.outbox.add({ lane, job, entry: fresh, plan, readyMs: performance.now() })
  }

  /** The signal that the commit consumes, unless another signal has replaced it. */
  private async removableSignal({ address, consumedSignal }: Commit): Promise<number | undefined> {
    if (consumedSignal === undefined) return
    const { signal } = actorKeys(this.place, address)
    const stored = await readLastFromLeader(this.nats, this.place.stream, signal)
    return stored?.seq === consumedSignal ? consumedSignal : undefined
  }

  private async wasKept({ commit, id }: CommitJob, fresh: ActorEntry): Promise<boolean> {
    if (fresh.commit === id && !isCapped(fresh)) return true
    const { address, append, state } = commit
    if (state === null) return fresh.revision === 0 && fresh.head === 0
    const [first] = append
    if (first === undefined) return false
    const { log } = actorKeys(this.place, address)
    return await commitOfKey(this.nats, this.place, log + first.n) === id
  }

  private async unanswered(member: Pick<BatchMember, "entry" | "job" | "lane">, error: unknown) {
    const { job, lane } = member
    if (job.abandoned) return this.next(lane)
    if (this.nats.nc.isClosed()) return this.finish(lane, job, () => job.broken(error))
    if (!job.mayBeStored) {
      return this.finish(lane, job, () => job.failed(asStorageUnavailable(error)))
    }
    await wait(retryDelayMs)
    return this.examine(member)
  }
}
