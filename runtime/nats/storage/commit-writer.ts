/**
 * Writes commits into one bucket, at most one of each actor at a time. A commit that conflicts
 * leaves its batch. After a write without an acknowledgement, the writer reads the actor from the
 * leader before it reports an outcome.
 */
import { keyOf, type StorageFailure, StorageFull, StorageUnavailable } from "../../actor/index.ts"
import { batchMessagesMax, batchTargetMessages, cachedStateCharsMax, giveUpMs,
  retryDelayMs } from "../../limits.ts"
import type { Commit, CommitOutcome } from "../../ports/index.ts"
import { asStorageUnavailable, type NatsApi, wait } from "../connection/index.ts"
import { actorKeys, type Bucket, callApi, isFull, isSequenceConflict, type NotStored,
  readLastFromLeader, write, wrongSequenceCode } from "../stream/index.ts"
import { type ActorEntry, isCapped } from "./actor-entry.ts"
import { commitOfKey, loadEntry } from "./actor-log.ts"
import { type ActorQueue, type BatchMember, CommitBatcher,
  type CommitJob } from "./commit-batcher.ts"
import { capPlan, changesTimer, type CommitPlan, committed, type CommitWork, conflict,
  conflictAfterReload, conflictOf, itemPlans, mayBeOverwritten, needsPurge, planCommit,
  uncapPlan } from "./commit-plan.ts"
import { type LogTrim, noTrim, planTrim } from "./log-trim.ts"
import { TimerLister } from "./stored-timers.ts"

/** A commit that is being written, alone or in a batch. */
type WrittenMember = Pick<BatchMember, "entry" | "job" | "plan" | "queue">

const indeterminate: CommitOutcome = { _tag: "Indeterminate" }

const refused = (failure: StorageFailure): CommitOutcome => ({ _tag: "Refused", failure })

const isLarge = ({ messages }: CommitPlan): boolean => messages.length > batchMessagesMax

/** A step before the last stores nothing that counts: the actor must be read, and that is all. */
const interrupted = ({ detail, ...step }: NotStored): NotStored => ({
  _tag: "Rejected",
  code: step._tag === "Rejected" ? step.code : wrongSequenceCode,
  detail
})

const workOf = ({ commit, id, logMessages }: CommitJob, trim: LogTrim): CommitWork => ({
  commit,
  id,
  logMessages,
  trim
})

export class BucketWriter {
  readonly bucket: Bucket
  readonly timers: TimerLister
  private readonly nats: NatsApi
  private readonly batcher: CommitBatcher

  constructor(nats: NatsApi, bucket: Bucket) {
    this.nats = nats
    this.bucket = bucket
    this.timers = new TimerLister(nats, bucket)
    this.batcher = new CommitBatcher(nats, {
      written: (members, written) => {
        if (written._tag === "Stored") this.finishBatch(members, written.first)
        else void this.settle(members, written)
      },
      dropped: ({ queue }) => this.next(queue)
    })
  }

  submit(queue: ActorQueue, job: CommitJob): void {
    queue.waiting.push(job)
    if (!queue.busy) this.next(queue)
  }

  /** Reads the actor once its pending commits have ended. */
  async load(queue: ActorQueue): Promise<ActorEntry> {
    while (queue.busy) await new Promise<void>((resolve) => queue.idle.push(resolve))
    queue.busy = true
    try {
      const entry = await this.reload(queue)
      // A long state is not cached: the commit that needs it reads it again.
      if ((entry.text?.length ?? 0) > cachedStateCharsMax) queue.entry = undefined
      return entry
    } finally {
      this.next(queue)
    }
  }

  private async reload(queue: ActorQueue): Promise<ActorEntry> {
    const { address } = queue
    const cached = queue.entry
    queue.entry = undefined
    const fresh = await loadEntry(this.nats, this.bucket, address)
    if (fresh.floor > 0) void this.purge(address, fresh.floor)
    const isUnchanged = cached?.isFenced === true && cached.seq === fresh.seq &&
      cached.head === fresh.head
    queue.entry = isUnchanged ? { ...fresh, text: undefined, isFenced: true } : fresh
    return fresh
  }

  private next(queue: ActorQueue): void {
    queue.busy = false
    for (let job = queue.waiting.shift(); job !== undefined; job = queue.waiting.shift()) {
      if (job.abandoned) continue
      queue.busy = true
      this.start(queue, job)
      return
    }
    for (const resolve of queue.idle.splice(0)) resolve()
  }

  private start(queue: ActorQueue, job: CommitJob): void {
    if (queue.entry === undefined) void this.reloadAndStart(queue, job)
    else this.prepare(queue, job, queue.entry)
  }

  private async reloadAndStart(queue: ActorQueue, job: CommitJob): Promise<void> {
    job.isReloaded = true
    try {
      await this.reload(queue)
    } catch (error) {
      return this.finish(queue, job, refused(asStorageUnavailable(error)))
    }
    this.start(queue, job)
  }

  private prepare(queue: ActorQueue, job: CommitJob, entry: ActorEntry): void {
    const { commit } = job
    const found = conflictOf(entry, commit)
    if (found !== undefined) {
      if (!job.isReloaded) return void this.reloadAndStart(queue, job)
      return this.finish(queue, job, conflict(found))
    }
    const repeatsText = commit.state === undefined && entry.isFenced && entry.revision > 0 &&
      changesTimer(entry, commit)
    if (repeatsText) return void this.readTextAndStart(queue, job, entry)
    if (commit.remove.length === 0) this.add(queue, job, entry, noTrim(entry))
    else void this.trimAndAdd(queue, job, entry)
  }

  /** The commit writes the record with its old text, which is known only until it was fenced. */
  private async readTextAndStart(
    queue: ActorQueue,
    job: CommitJob,
    known: ActorEntry
  ): Promise<void> {
    let fresh: ActorEntry
    try {
      queue.entry = undefined
      fresh = await loadEntry(this.nats, this.bucket, queue.address)
    } catch (error) {
      return this.finish(queue, job, refused(asStorageUnavailable(error)))
    }
    queue.entry = fresh
    // What this owner knew is no longer so: it must not write on what another one wrote.
    const found = conflictAfterReload(known, fresh, job)
    if (found !== undefined) return this.finish(queue, job, conflict(found))
    this.prepare(queue, job, fresh)
  }

  /** Reads the messages that hold the items which the commit removes. */
  private async trimAndAdd(queue: ActorQueue, job: CommitJob, entry: ActorEntry): Promise<void> {
    try {
      this.add(queue, job, entry, await planTrim(this.nats, this.bucket, entry, job.commit))
    } catch (error) {
      this.finish(queue, job, refused(asStorageUnavailable(error)))
    }
  }

  private add(queue: ActorQueue, job: CommitJob, entry: ActorEntry, trim: LogTrim): void {
    const plan = planCommit(this.bucket, entry, workOf(job, trim))
    if (plan.messages.length > 0) return this.place({ queue, job, entry, plan })
    this.finish(queue, job, committed(job.commit, entry.revision, Number.NaN))
  }

  private place(member: WrittenMember): void {
    const { entry, job, plan, queue } = member
    if (!isLarge(plan)) this.batcher.add({ queue, job, entry, plan, readyMs: performance.now() })
    // The record is written again with its text, which a fenced entry does not have.
    else if (entry.isFenced) void this.resolve(member)
    else void this.writeLarge(member)
  }

  /**
   * Writes a commit of more messages than one atomic batch takes. The first batches write its items
   * above a cap in the state's record, so readers ignore them. The last batch writes everything
   * else and lifts the cap. Readers always ignore the items of an interrupted commit.
   */
  private async writeLarge(member: WrittenMember): Promise<void> {
    const { entry, job, queue } = member
    const { commit } = job
    queue.entry = undefined
    try {
      const work = workOf(job, await planTrim(this.nats, this.bucket, entry, commit, true))
      const { length: keys } = uncapPlan(this.bucket, entry, entry, work).messages
      if (keys > batchMessagesMax) {
        const detail = `${keyOf(commit.address)}: a commit changes ${keys} keys besides its ` +
          `appended items; one atomic batch takes ${batchMessagesMax}: split the commit`
        return this.finish(queue, job, refused(new StorageFull({ detail })))
      }
      const result = await this.writeSteps(entry, work)
      if ("revision" in result) {
        return this.finish(queue, job, committed(commit, result.revision, Number.NaN))
      }
      await this.settle([member], result)
    } catch (error) {
      await this.retryResolve(member, error)
    }
  }

  /** Returns the actor after a large commit, or why a step was not stored. */
  private async writeSteps(entry: ActorEntry, work: CommitWork): Promise<ActorEntry | NotStored> {
    const { bucket, nats } = this
    const capping = capPlan(bucket, entry, work)
    const first = await write(nats, capping.messages)
    if (first._tag !== "Stored") return interrupted(first)
    const capped = capping.after(first.first)
    for (const messages of itemPlans(bucket, capped, work, batchTargetMessages)) {
      const written = await write(nats, messages)
      if (written._tag !== "Stored") return interrupted(written)
    }
    const uncapping = uncapPlan(bucket, entry, capped, work)
    const last = await write(nats, uncapping.messages)
    if (last._tag === "Stored") return uncapping.after(last.first)
    // While leaders change, a server may report a conflict for a write that was stored. Nothing but
    // the record names this commit, and its next owner writes that.
    return last._tag === "Rejected" && isSequenceConflict(last.code)
      ? { _tag: "Indeterminate", detail: last.detail }
      : last
  }

  private finish(queue: ActorQueue, job: CommitJob, outcome: CommitOutcome): void {
    job.settle(outcome)
    this.next(queue)
  }

  private finishBatch(members: ReadonlyArray<BatchMember>, from: number): void {
    let first = from
    for (const { job, queue, plan } of members) {
      this.timers.note(plan.timers)
      this.finishStored(queue, job, plan.after(first), undefined, first + plan.signalsAt)
      first += plan.messages.length
    }
  }

  /**
   * Reports a stored commit; `entry` is the actor after it, and `firstSignal` as in
   * {@link committed}.
   */
  private finishStored(
    queue: ActorQueue,
    job: CommitJob,
    entry: ActorEntry,
    revision = entry.revision,
    firstSignal = Number.NaN
  ): void {
    const { commit } = job
    // Before the report, because the caller may read at once. The marker of a removed actor
    // expires or is purged, so its sequence is not cached.
    queue.entry = commit.state === null ? undefined : entry
    job.settle(committed(commit, revision, firstSignal))
    if (commit.state !== null) return this.next(queue)
    if (!needsPurge(entry)) return this.next(queue)
    void this.purge(commit.address, entry.floor).then(() => this.next(queue))
  }

  /** Deletes the items of a removed actor; until then, readers ignore them by their sequences. */
  private async purge(address: CommitJob["commit"]["address"], upTo: number): Promise<void> {
    const { all } = actorKeys(this.bucket, address)
    await callApi(this.nats, `STREAM.PURGE.${this.bucket.stream}`, { filter: all, seq: upTo + 1 })
      .catch(() => undefined)
  }

  /** The messages of these commits were not acknowledged. */
  private async settle(
    members: ReadonlyArray<WrittenMember>,
    written: NotStored
  ): Promise<void> {
    const { _tag, detail } = written
    const code = written._tag === "Rejected" ? written.code : undefined
    for (const { job } of members) {
      job.failures++
      if (_tag === "Indeterminate") job.mayBeStored = true
    }
    // Waiting changes nothing about a wrong sequence.
    if (code !== wrongSequenceCode) await wait(retryDelayMs)
    const needsRead = code === undefined || isSequenceConflict(code)
    const failure = isFull(written)
      ? new StorageFull({ detail })
      : new StorageUnavailable({ detail })
    await Promise.all(members.map(async (member) => {
      const { job, queue } = member
      if (job.abandoned) {
        queue.entry = undefined
        return this.next(queue)
      }
      const isOver = failure._tag === "StorageFull" ||
        performance.now() - job.sinceMs > giveUpMs
      // A conflict is read even when the time is over: the rejected write may have been stored.
      if (needsRead || job.mayBeStored) return this.resolve(member, isOver ? failure : undefined)
      if (isOver) return this.finish(queue, job, refused(failure))
      this.placeAgain(member)
    }))
  }

  /**
   * Reads from the leader whether a commit was stored, and its actor. With `overdue`, the time of
   * the commit is over: if nothing was stored, and no write can still arrive, it is refused.
   */
  private async resolve(member: WrittenMember, overdue?: StorageFailure): Promise<void> {
    const { entry, job, plan, queue } = member
    const { commit } = job
    let fresh: ActorEntry
    let trim: LogTrim
    let wasStored: boolean
    let consumedSignal: number | undefined
    try {
      queue.entry = undefined
      fresh = await loadEntry(this.nats, this.bucket, commit.address, entry)
      // After a rejection too: while leaders change, the write may have been stored.
      wasStored = await this.wasStored(job, fresh)
      trim = await planTrim(this.nats, this.bucket, fresh, commit)
      consumedSignal = await this.removableSignal(commit)
    } catch (error) {
      return this.retryResolve(member, error, overdue)
    }
    if (wasStored) {
      this.timers.note(plan.timers)
      // After a later write by another owner, the decisions that follow this commit must fail.
      const revision = fresh.commit === job.id ? fresh.revision : Number.NaN
      return this.finishStored(queue, job, { ...fresh, isFenced: false }, revision)
    }
    const found = conflictAfterReload(entry, fresh, job)
    queue.entry = fresh
    if (found !== undefined) {
      const isIndeterminate = job.mayBeStored &&
        (isLarge(plan) || mayBeOverwritten(entry, fresh, commit))
      return this.finish(queue, job, isIndeterminate ? indeterminate : conflict(found))
    }
    if (overdue !== undefined && !job.mayBeStored) {
      return this.finish(queue, job, refused(overdue))
    }
    const work = { ...workOf(job, trim), commit: { ...commit, consumedSignal } }
    this.placeAgain({ queue, job, entry: fresh, plan: planCommit(this.bucket, fresh, work) })
  }

  /** Another owner may have loaded the actor meanwhile, and must not be surprised by a write. */
  private placeAgain(member: WrittenMember): void {
    const { job, queue } = member
    if (!job.isLost) return this.place(member)
    const detail = `${keyOf(queue.address)}: another node may own the actor by now`
    const failure = new StorageUnavailable({ detail })
    this.finish(queue, job, job.mayBeStored ? { _tag: "Indeterminate", failure } : refused(failure))
  }

  /** The signal that the commit consumes, unless another signal has replaced it. */
  private async removableSignal({ address, consumedSignal }: Commit): Promise<number | undefined> {
    if (consumedSignal === undefined) return
    const { signal } = actorKeys(this.bucket, address)
    const stored = await readLastFromLeader(this.nats, this.bucket.stream, signal)
    return stored?.seq === consumedSignal ? consumedSignal : undefined
  }

  private async wasStored({ commit, id }: CommitJob, fresh: ActorEntry): Promise<boolean> {
    if (fresh.commit === id && !isCapped(fresh)) return true
    const { address, append, state } = commit
    if (state === null) return fresh.revision === 0 && fresh.head === 0
    const [first] = append
    if (first === undefined || first.n > fresh.head) return false
    const { log } = actorKeys(this.bucket, address)
    return await commitOfKey(this.nats, this.bucket, log + first.n) === id
  }

  private async retryResolve(
    member: WrittenMember,
    error: unknown,
    overdue?: StorageFailure
  ): Promise<void> {
    const { job, queue } = member
    if (job.abandoned) return this.next(queue)
    // Not sent yet. A rejected write is read again: while leaders change, it may have been stored.
    if (job.failures === 0) return this.finish(queue, job, refused(asStorageUnavailable(error)))
    if (this.nats.nc.isClosed()) return this.finish(queue, job, indeterminate)
    await wait(retryDelayMs)
    return this.resolve(member, overdue)
  }
}
