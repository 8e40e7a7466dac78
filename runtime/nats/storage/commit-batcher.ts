/**
 * What waits to be written to one bucket: as atomic batches, a few under way at once, or, where
 * a commit is one message and that is quicker, by itself.
 */
import { type Address, keyOf, type StorageFailure } from "../../actor/index.ts"
import { batchesInFlight, batchFailuresMax, batchMessagesMax, batchTargetBytes, batchTargetMessages,
  cachedActorsMax, singleWritesInFlight, writeModeSamples, writeModeWindows,
  writeModeWindowsMax } from "../../limits.ts"
import type { Commit, CommitOutcome } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { write, type WriteResult } from "../stream/index.ts"
import type { ActorEntry, LogMessage } from "./actor-entry.ts"
import type { CommitPlan } from "./commit-plan.ts"

/** One commit on its way. */
export interface CommitJob {
  readonly commit: Commit
  readonly id: string
  readonly sinceMs: number
  readonly bytes: number
  /** The items that it appends. */
  readonly logMessages: ReadonlyArray<LogMessage>
  readonly done: (outcome: CommitOutcome) => void
  /** It is certain that nothing was kept. */
  readonly failed: (failure: StorageFailure) => void
  readonly broken: (defect: unknown) => void
  /** Whether the entry was read for this very commit. */
  isReloaded: boolean
  /** Whether a write of it may have been kept, or may still be. */
  mayBeStored: boolean
  /** Writes that failed without this commit being at fault. */
  tries: number
  /** Nobody waits any more: it is not sent again. */
  abandoned: boolean
}

export interface ActorQueue {
  readonly address: Address
  entry: ActorEntry | undefined
  readonly waiting: Array<CommitJob>
  busy: boolean
  /** Called when the lane is not busy any more. */
  readonly idle: Array<() => void>
}

export class ActorQueues {
  private readonly lanes = new Map<string, ActorQueue>()

  /** The lane of an actor, now the one used last. */
  of(address: Address): ActorQueue {
    const key = keyOf(address)
    const known = this.lanes.get(key)
    const lane = known ?? { address, entry: undefined, waiting: [], busy: false, idle: [] }
    if (known !== undefined) this.lanes.delete(key)
    this.lanes.set(key, lane)
    if (known === undefined && this.lanes.size > cachedActorsMax) this.evict(lane)
    return lane
  }

  /** The lane of an actor, if there is one; it counts as no use of it. */
  peek(address: Address): ActorQueue | undefined {
    return this.lanes.get(keyOf(address))
  }

  private evict(kept: ActorQueue): void {
    for (const [key, lane] of this.lanes) {
      if (lane.busy || lane === kept) continue
      this.lanes.delete(key)
      if (this.lanes.size <= cachedActorsMax) return
    }
  }
}

/*
 * Whether commits of one message go each by itself or grouped. What is quicker depends on the
 * servers: with a flush for each write (`sync_interval: always`) groups are ten times quicker,
 * without it plain publishes are, on one server several times. So both are measured, by the
 * time that a commit takes: the slower one is tried again now and then, ever less often.
 */

export type WriteMode = "plain" | "grouped"

/** The other manner must be so much quicker. */
const CLEARLY = 0.9

const other = (manner: WriteMode): WriteMode => manner === "plain" ? "grouped" : "plain"

export class WriteModeChoice {
  manner: WriteMode = "plain"
  /** Mean time of a commit in each manner, when last measured. */
  private readonly meansMs: Record<WriteMode, number | undefined> = {
    plain: undefined,
    grouped: undefined
  }
  private samples = 0
  private sumMs = 0
  private windows = 0
  private windowsToTrial = writeModeWindows
  private onTrial = false

  /** A commit was written in this manner, and took so long. */
  took(manner: WriteMode, ms: number): void {
    if (manner !== this.manner) return
    this.sumMs += ms
    if (++this.samples < writeModeSamples) return
    this.meansMs[manner] = this.sumMs / this.samples
    this.samples = 0
    this.sumMs = 0
    this.decide()
  }

  private decide(): void {
    const mine = this.meansMs[this.manner] ?? 0
    const theirs = this.meansMs[other(this.manner)]
    if (this.onTrial) {
      this.onTrial = false
      if (theirs !== undefined && mine < CLEARLY * theirs) {
        this.windowsToTrial = writeModeWindows
      } else {
        this.manner = other(this.manner)
        this.windowsToTrial = Math.min(2 * this.windowsToTrial, writeModeWindowsMax)
      }
      this.windows = 0
    } else if (++this.windows >= this.windowsToTrial) {
      this.onTrial = true
      this.manner = other(this.manner)
    }
  }
}

/* The actors written or loaded lately: what is known of each, and its commits in turn. */

/** One commit, ready to be written. */
export interface BatchMember {
  readonly lane: ActorQueue
  readonly job: CommitJob
  /** What the plan was made upon. */
  readonly entry: ActorEntry
  readonly plan: CommitPlan
  readonly readyMs: number
}

export interface CommitBatcherEvents {
  readonly written: (members: ReadonlyArray<BatchMember>, written: WriteResult) => void
  /** Nobody waits for it any more, and it was not sent. */
  readonly dropped: (member: BatchMember) => void
}

export class CommitBatcher {
  private readonly nats: NatsApi
  private readonly events: CommitBatcherEvents
  private readonly pace = new WriteModeChoice()
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

  /** All that is added in this turn of the event loop goes together. */
  private schedule(): void {
    if (this.scheduled || this.ready.length === 0) return
    this.scheduled = true
    queueMicrotask(() => {
      this.scheduled = false
      if (this.pace.manner === "plain") this.sendPlain()
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
    this.answer([member], written, "plain")
  }

  private async sendBatch(members: ReadonlyArray<BatchMember>): Promise<void> {
    this.batches++
    const written = await write(this.nats, members.flatMap(({ plan }) => plan.messages))
    this.batches--
    this.answer(members, written, "grouped")
  }

  private answer(
    members: ReadonlyArray<BatchMember>,
    written: WriteResult,
    manner: WriteMode
  ): void {
    if (written._tag === "Stored") {
      const nowMs = performance.now()
      for (const { plan, readyMs } of members) {
        if (plan.messages.length === 1) this.pace.took(manner, nowMs - readyMs)
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
      const isAlone = job.tries >= batchFailuresMax
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
