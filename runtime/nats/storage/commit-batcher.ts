/**
 * The commits that wait to be written to one bucket. They go as atomic batches, a few in flight at
 * once. A commit of one message may go by itself where that is faster.
 */
import { type Address, keyOf } from "../../actor/index.ts"
import { batchesInFlight, batchFailuresMax, batchMessagesMax, batchTargetBytes, batchTargetMessages,
  cachedActorsMax, singleWritesInFlight, writeModeSamples, writeModeWindows,
  writeModeWindowsMax } from "../../limits.ts"
import type { Commit, CommitOutcome, ReportOutcome } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { write, type WriteResult } from "../stream/index.ts"
import type { ActorEntry, LogMessage } from "./actor-entry.ts"
import type { CommitPlan } from "./commit-plan.ts"

/** The outcomes of one group: each is reported as soon as it is known. */
export class GroupOutcomes {
  /** The caller no longer waits: unsettled commits are not sent again. */
  abandoned = false
  private readonly outcomes: Array<CommitOutcome> = []
  private left: number
  /** Whether no other node can own the actor of a member. */
  readonly isHeld: (at: number) => boolean
  private readonly reportOutcome: ReportOutcome | undefined
  private readonly end: (outcomes: ReadonlyArray<CommitOutcome>) => void

  constructor(
    size: number,
    report: ReportOutcome | undefined,
    isHeld: (at: number) => boolean,
    end: (outcomes: ReadonlyArray<CommitOutcome>) => void
  ) {
    this.left = size
    this.isHeld = isHeld
    this.reportOutcome = report
    this.end = end
    if (size === 0) end([])
  }

  settle(at: number, outcome: CommitOutcome): void {
    this.outcomes[at] = outcome
    this.reportOutcome?.(at, outcome)
    if (--this.left === 0) this.end(this.outcomes)
  }
}

/** One commit that is being written. */
export class CommitJob {
  readonly commit: Commit
  /** The items that it appends. */
  readonly logMessages: ReadonlyArray<LogMessage>
  readonly id: string
  readonly bytes: number
  readonly sinceMs = performance.now()
  /** The actor was read from the leader for this commit. */
  isReloaded = false
  /** A write of it may have been stored, or may still be. */
  mayBeStored = false
  /** Failed writes. */
  failures = 0
  private readonly group: GroupOutcomes
  private readonly at: number

  constructor(
    commit: Commit,
    logMessages: ReadonlyArray<LogMessage>,
    id: string,
    bytes: number,
    group: GroupOutcomes,
    at: number
  ) {
    this.commit = commit
    this.logMessages = logMessages
    this.id = id
    this.bytes = bytes
    this.group = group
    this.at = at
  }

  get abandoned(): boolean {
    return this.group.abandoned
  }

  /** Another node may own the actor: the commit must not be written again. */
  get isLost(): boolean {
    return !this.group.isHeld(this.at)
  }

  settle(outcome: CommitOutcome): void {
    this.group.settle(this.at, outcome)
  }
}

/** An actor that was written or loaded recently: what is known of it, and its waiting commits. */
export interface ActorQueue {
  readonly address: Address
  entry: ActorEntry | undefined
  readonly waiting: Array<CommitJob>
  busy: boolean
  /** Called when no commit or load is running. */
  readonly idle: Array<() => void>
}

export class ActorQueues {
  private readonly queues = new Map<string, ActorQueue>()

  /** The queue of an actor, which becomes the most recently used. */
  of(address: Address): ActorQueue {
    const key = keyOf(address)
    const known = this.queues.get(key)
    const queue = known ?? { address, entry: undefined, waiting: [], busy: false, idle: [] }
    if (known !== undefined) this.queues.delete(key)
    this.queues.set(key, queue)
    if (known === undefined && this.queues.size > cachedActorsMax) this.evict(queue)
    return queue
  }

  /** The queue of an actor, if there is one; this is no use of it. */
  peek(address: Address): ActorQueue | undefined {
    return this.queues.get(keyOf(address))
  }

  private evict(used: ActorQueue): void {
    for (const [key, queue] of this.queues) {
      if (queue.busy || queue === used) continue
      this.queues.delete(key)
      if (this.queues.size <= cachedActorsMax) return
    }
  }
}

export type WriteMode = "plain" | "grouped"

/** The other mode must take less than this share of the time. */
const clearlyFaster = 0.9

const other = (mode: WriteMode): WriteMode => mode === "plain" ? "grouped" : "plain"

/**
 * Chooses whether commits of one message go each by itself or grouped. Which is faster depends on
 * the servers: groups are ten times faster with a flush for each write (`sync_interval: always`);
 * without it, plain publishes are several times faster on one server. So both are measured by the
 * time of a commit, and the slower mode is tried again less and less often.
 */
export class WriteModeChoice {
  mode: WriteMode = "plain"
  /** Mean time of a commit in each mode, as measured last. */
  private readonly meansMs: Record<WriteMode, number | undefined> = {
    plain: undefined,
    grouped: undefined
  }
  private samples = 0
  private sumMs = 0
  private windows = 0
  private windowsBeforeTrial = writeModeWindows
  private isTrial = false

  /** Adds the time of a commit that was written in this mode. */
  record(mode: WriteMode, ms: number): void {
    if (mode !== this.mode) return
    this.sumMs += ms
    if (++this.samples < writeModeSamples) return
    this.meansMs[mode] = this.sumMs / this.samples
    this.samples = 0
    this.sumMs = 0
    this.decide()
  }

  private decide(): void {
    const mine = this.meansMs[this.mode] ?? 0
    const theirs = this.meansMs[other(this.mode)]
    if (this.isTrial) {
      this.isTrial = false
      if (theirs !== undefined && mine < clearlyFaster * theirs) {
        this.windowsBeforeTrial = writeModeWindows
      } else {
        this.mode = other(this.mode)
        this.windowsBeforeTrial = Math.min(2 * this.windowsBeforeTrial, writeModeWindowsMax)
      }
      this.windows = 0
    } else if (++this.windows >= this.windowsBeforeTrial) {
      this.isTrial = true
      this.mode = other(this.mode)
    }
  }
}

/** One commit, ready to be written. */
export interface BatchMember {
  readonly queue: ActorQueue
  readonly job: CommitJob
  /** The actor that the plan starts from. */
  readonly entry: ActorEntry
  readonly plan: CommitPlan
  readonly readyMs: number
}

export interface CommitBatcherEvents {
  readonly written: (members: ReadonlyArray<BatchMember>, written: WriteResult) => void
  /** The caller no longer waits, and the commit was not sent. */
  readonly dropped: (member: BatchMember) => void
}

export class CommitBatcher {
  private readonly nats: NatsApi
  private readonly events: CommitBatcherEvents
  private readonly modeChoice = new WriteModeChoice()
  private ready: Array<BatchMember> = []
  private batches = 0
  private plain = 0
  private scheduled = false

  constructor(nats: NatsApi, events: CommitBatcherEvents) {
    this.nats = nats
    this.events = events
  }

  add(member: BatchMember): void {
    this.ready.push(member)
    this.schedule()
  }

  /** Commits of one turn of the event loop go together. */
  private schedule(): void {
    if (this.scheduled || this.ready.length === 0) return
    this.scheduled = true
    queueMicrotask(() => {
      this.scheduled = false
      if (this.modeChoice.mode === "plain") this.sendPlain()
      while (this.batches < batchesInFlight && this.ready.length > 0) {
        const members = this.take()
        if (members.length > 0) void this.sendBatch(members)
      }
    })
  }

  private sendPlain(): void {
    const { ready } = this
    this.ready = []
    for (const member of ready) {
      if (member.plan.messages.length > 1 || this.plain >= singleWritesInFlight) {
        this.ready.push(member)
      } else if (member.job.abandoned) this.events.dropped(member)
      else void this.sendOne(member)
    }
  }

  private async sendOne(member: BatchMember): Promise<void> {
    this.plain++
    const written = await write(this.nats, member.plan.messages)
    this.plain--
    this.report([member], written, "plain")
  }

  private async sendBatch(members: ReadonlyArray<BatchMember>): Promise<void> {
    this.batches++
    const written = await write(this.nats, members.flatMap(({ plan }) => plan.messages))
    this.batches--
    this.report(members, written, "grouped")
  }

  private report(
    members: ReadonlyArray<BatchMember>,
    written: WriteResult,
    mode: WriteMode
  ): void {
    if (written._tag === "Stored") {
      const nowMs = performance.now()
      for (const { plan, readyMs } of members) {
        if (plan.messages.length === 1) this.modeChoice.record(mode, nowMs - readyMs)
      }
    }
    this.events.written(members, written)
    this.schedule()
  }

  private take(): ReadonlyArray<BatchMember> {
    const members: Array<BatchMember> = []
    let messages = 0
    let bytes = 0
    let taken = 0
    for (const member of this.ready) {
      const { job, plan } = member
      const more = messages + plan.messages.length
      const isAlone = job.failures >= batchFailuresMax
      if (members.length > 0 && (isAlone || more > batchMessagesMax)) break
      taken++
      if (job.abandoned) {
        this.events.dropped(member)
        continue
      }
      members.push(member)
      messages = more
      bytes += job.bytes
      if (isAlone || messages >= batchTargetMessages || bytes >= batchTargetBytes) break
    }
    this.ready = this.ready.slice(taken)
    return members
  }
}
