/**
 * What waits to be written to one bucket: as atomic batches, a few under way at once, or, where
 * a commit is one message and that is quicker, by itself.
 */
import type { NatsApi } from "./connection.ts"
import type { Job, Lane } from "./lanes.ts"
import {
  BATCH_MESSAGES_MAX,
  BATCHES_IN_FLIGHT,
  GROUP_BYTES,
  GROUP_MESSAGES,
  PLAIN_IN_FLIGHT,
  TOGETHER_MAX
} from "./limits.ts"
import { type Manner, Pace } from "./pace.ts"
import type { Plan } from "./plan.ts"
import type { Entry } from "./record.ts"
import { write, type Written } from "./wire.ts"

/** One commit, ready to be written. */
export interface Member {
  readonly lane: Lane
  readonly job: Job
  /** What the plan was made upon. */
  readonly entry: Entry
  readonly plan: Plan
  readonly readyMs: number
}

export interface OutboxEvents {
  readonly written: (members: ReadonlyArray<Member>, written: Written) => void
  /** Nobody waits for it any more, and it was not sent. */
  readonly dropped: (member: Member) => void
}

export class Outbox {
  private readonly nats: NatsApi
  private readonly events: OutboxEvents
  private readonly pace = new Pace()
  private ready: Array<Member> = []
  private batches = 0
  private plain = 0
  private scheduled = false

  constructor(nats: NatsApi, events: OutboxEvents) {
    this.nats = nats
    this.events = events
  }

  add(member: Member): void {
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
      while (this.batches < BATCHES_IN_FLIGHT && this.ready.length > 0) {
        const members = this.take()
        if (members.length > 0) void this.sendBatch(members)
      }
    })
  }

  private sendPlain(): void {
    const { ready } = this
    this.ready = []
    for (const member of ready) {
      if (member.plan.messages.length > 1 || this.plain >= PLAIN_IN_FLIGHT) this.ready.push(member)
      else if (member.job.abandoned) this.events.dropped(member)
      else void this.sendOne(member)
    }
  }

  private async sendOne(member: Member): Promise<void> {
    this.plain++
    const written = await write(this.nats, member.plan.messages)
    this.plain--
    this.answer([member], written, "plain")
  }

  private async sendBatch(members: ReadonlyArray<Member>): Promise<void> {
    this.batches++
    const written = await write(this.nats, members.flatMap(({ plan }) => plan.messages))
    this.batches--
    this.answer(members, written, "grouped")
  }

  private answer(members: ReadonlyArray<Member>, written: Written, manner: Manner): void {
    if (written._tag === "Kept") {
      const nowMs = performance.now()
      for (const { plan, readyMs } of members) {
        if (plan.messages.length === 1) this.pace.took(manner, nowMs - readyMs)
      }
    }
    this.events.written(members, written)
    this.schedule()
  }

  private take(): ReadonlyArray<Member> {
    const members: Array<Member> = []
    let messages = 0
    let bytes = 0
    let taken = 0
    for (const member of this.ready) {
      const { job, plan } = member
      const more = messages + plan.messages.length
      const isAlone = job.tries >= TOGETHER_MAX
      if (members.length > 0 && (isAlone || more > BATCH_MESSAGES_MAX)) break
      taken++
      if (job.abandoned) {
        this.events.dropped(member)
        continue
      }
      members.push(member)
      messages = more
      bytes += job.bytes
      if (isAlone || messages >= GROUP_MESSAGES || bytes >= GROUP_BYTES) break
    }
    this.ready = this.ready.slice(taken)
    return members
  }
}
