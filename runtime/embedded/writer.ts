/**
 * The group writer: whatever changes the store joins the next group, and one group at a time is
 * written and flushed beside the event loop. After a failed write every job fails at once
 * until the store has been opened anew (see store.ts).
 */
import type { StorageFailure } from "../errors.ts"
import { StorageUnavailable } from "../errors.ts"
import { WriteBatch } from "./batch.ts"
import {
  asFailure,
  type ClearRequest,
  type EngineWriter,
  type WriteRequest,
  type WriterEvents,
  type WriterReply
} from "./engine.ts"
import { groupBytesMax } from "./limits.ts"

/** A change that joins a group. Exactly one of the last three is called, once. */
export interface WriteJob {
  /**
   * Reads what `prepare` will need and cannot read at once; called when all groups before are
   * durable, and again when the job was not taken into the group then. Never rejects.
   */
  readonly fetch?: (() => Promise<void>) | undefined
  /**
   * Checks fences and adds its changes. Called when all groups before are durable; the jobs
   * before it in this group have been prepared.
   */
  readonly prepare: (batch: WriteBatch) => void
  readonly durable: () => void
  readonly failed: (failure: StorageFailure) => void
  /** `prepare` threw a defect. */
  readonly broken: (defect: unknown) => void
}

/** Where the writer's troubles go. */
export interface Trouble {
  readonly onFailure: (failure: StorageFailure) => void
}

export class GroupWriter {
  /** Count of the commits that are durable. */
  commits = 0
  private readonly trouble: Trouble
  private readonly batch = new WriteBatch()
  private engine: EngineWriter | undefined = undefined
  /** The memory that the engine knows. */
  private shared: SharedArrayBuffer | undefined = undefined
  private failure: StorageFailure | undefined = undefined
  private jobs: Array<WriteJob> = []
  private clears: Array<{ request: ClearRequest; done: (failed: boolean) => void }> = []
  private clearNext = false
  private answered: ((failure: StorageFailure | undefined) => void) | undefined = undefined
  private idle: Array<() => void> = []

  constructor(trouble: Trouble) {
    this.trouble = trouble
  }

  /** Why nothing can be written just now. */
  get failing(): StorageFailure | undefined {
    return this.failure
  }

  /** Writes through what this starts from now on. */
  attach(start: (events: WriterEvents) => EngineWriter, commits: number): void {
    this.shared = undefined
    this.commits = commits
    this.failure = undefined
    const engine = start({
      answered: (reply) => {
        if (this.engine === engine) this.answer(reply)
      },
      lost: (detail) => {
        if (this.engine !== engine) return
        this.engine = undefined
        const failure = new StorageUnavailable({ detail })
        if (this.answered !== undefined) this.settle(failure)
        else this.fail(failure)
      }
    })
    this.engine = engine
    this.next()
  }

  /** Ends the engine's writing; resolves when it has let go of the database. */
  async detach(failure: StorageFailure): Promise<void> {
    this.failure ??= failure
    this.failAll(this.failure)
    if (this.answered !== undefined) await new Promise<void>((resolve) => this.idle.push(resolve))
    const { engine } = this
    this.engine = undefined
    await engine?.end()
  }

  /** Resolves when all that was submitted has been answered. */
  async drained(): Promise<void> {
    while (this.answered !== undefined || (this.jobs.length > 0 && this.failure === undefined)) {
      await new Promise<void>((resolve) => this.idle.push(resolve))
    }
  }

  submit(job: WriteJob): void {
    if (this.failure !== undefined) {
      job.failed(this.failure)
      return
    }
    this.jobs.push(job)
    if (this.answered === undefined) this.next()
  }

  /** Deletes a span of keys between two groups; `done` tells whether it failed. */
  clear(request: ClearRequest, done: (failed: boolean) => void): void {
    if (this.failure !== undefined) {
      done(true)
      return
    }
    this.clears.push({ request, done })
    if (this.answered === undefined) this.next()
  }

  private next(): void {
    while (this.answered === undefined && this.failure === undefined) {
      const clear = this.jobs.length === 0 || this.clearNext ? this.clears.shift() : undefined
      this.clearNext = false
      if (clear !== undefined) {
        this.send(clear.request, (failure) => clear.done(failure !== undefined))
      } else if (this.jobs.length > 0) {
        this.beginGroup()
        this.clearNext = true
      } else break
    }
    if (this.answered === undefined) { for (const resolve of this.idle.splice(0)) resolve() }
  }

  /** Lets the jobs read before a group is made of them, where any of them has to. */
  private beginGroup(): void {
    const { jobs } = this
    const { length } = jobs
    const fetching = jobs.flatMap(({ fetch }) => fetch === undefined ? [] : [fetch()])
    if (fetching.length === 0) return this.writeGroup(length)
    this.answered = () => {}
    void Promise.all(fetching).then(() => {
      this.answered = undefined
      // They have failed when the writer has.
      if (this.jobs === jobs && this.failure === undefined) this.writeGroup(length)
      this.next()
    })
  }

  private writeGroup(jobsMax: number): void {
    const { batch } = this
    const group: Array<WriteJob> = []
    batch.begin(this.commits)
    let taken = 0
    for (const job of this.jobs) {
      if (taken === jobsMax || batch.length >= groupBytesMax) break
      taken++
      if (this.prepare(job)) group.push(job)
    }
    this.jobs = taken === this.jobs.length ? [] : this.jobs.slice(taken)
    if (batch.isEmpty) {
      for (const job of group) job.durable()
      return
    }
    batch.finish()
    const shared = batch.shared === this.shared ? undefined : batch.shared
    this.shared = batch.shared
    this.send({ _tag: "Write", length: batch.length, shared }, (failure) => {
      if (failure === undefined) {
        this.commits = batch.commits
        for (const job of group) job.durable()
      } else for (const job of group) job.failed(failure)
    })
  }

  private prepare(job: WriteJob): boolean {
    const mark = this.batch.mark()
    try {
      job.prepare(this.batch)
      return true
    } catch (error) {
      this.batch.back(mark)
      // A TypeError is a broken invariant of ours; the binding and the port throw others.
      if (error instanceof TypeError) job.broken(error)
      else job.failed(asFailure(error))
      return false
    }
  }

  private send(
    request: WriteRequest | ClearRequest,
    answered: (failure: StorageFailure | undefined) => void
  ): void {
    this.answered = answered
    this.engine?.post(request)
  }

  private answer(reply: WriterReply): void {
    this.settle(reply === undefined ? undefined : asFailure(reply))
  }

  private settle(failure: StorageFailure | undefined): void {
    const answered = this.answered
    this.answered = undefined
    if (failure !== undefined) this.failure ??= failure
    answered?.(failure)
    if (failure !== undefined) this.fail(failure)
    this.next()
  }

  private fail(failure: StorageFailure): void {
    const known = this.failure !== undefined && this.failure !== failure
    this.failure ??= failure
    this.failAll(failure)
    if (!known) this.trouble.onFailure(failure)
  }

  private failAll(failure: StorageFailure): void {
    for (const { failed } of this.jobs.splice(0)) failed(failure)
    for (const { done } of this.clears.splice(0)) done(true)
  }
}
