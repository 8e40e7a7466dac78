/**
 * What waits to be written to one bucket: as atomic batches, a few under way at once, or, where
 * a commit is one message and that is quicker, by itself.
 */
import type { NatsApi } from "./connection.ts"
import type { CommitJob, Lane } from "./lanes.ts"
import {
  batchesInFlight,
  batchMessagesMax,
  groupBytes,
  groupMessages,
  plainInFlight,
  questionsPerRequestMax
} from "./limits.ts"
import { BatchingChoice, type Manner } from "./pace.ts"
import type { Plan } from "./plan.ts"
import type { ActorEntry } from "./record.ts"
import { write, type Written } from "./wire.ts"

/** One commit, ready to be written. */
export interface BatchMember {
  readonly lane: Lane
  readonly job: CommitJob
  /** What the plan was made upon. */
  readonly entry: ActorEntry
  readonly plan: Plan
  readonly readyMs: number
}

export interface CommitBatcherEvents {
  readonly written: (members: ReadonlyArray<BatchMember>, written: Written) => void
  /** Nobody waits for it any more, and it was not sent. */
  readonly dropped: (member: BatchMember) => void
}

export class CommitBatcher {
  private readonly nats: NatsApi
  private readonly events: CommitBatcherEvents
  private readonly pace = new BatchingChoice()
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
      if (member.plan.messages.length > 1 || this.plain >= plainInFlight) this.ready.push(member)
      else if (member.job.abandoned) this.events.dropped(member)
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

  private answer(members: ReadonlyArray<BatchMember>, written: Written, manner: Manner): void {
    if (written._tag === "Kept") {
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
      const isAlone = job.tries >= questionsPerRequestMax
      if (members.length > 0 && (isAlone || more > batchMessagesMax)) break
      taken++
      if (job.abandoned) {
        this.events.dropped(member)
        continue
      }
      members.push(member)
      messages = more
      bytes += job.bytes
      if (isAlone || messages >= groupMessages || bytes >= groupBytes) break
    }
    this.ready = this.ready.slice(taken)
    return members
  }
}
