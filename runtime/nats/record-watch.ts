/** Follows the stream of records, keys only, and tells how far it has got. */
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from "@nats-io/jetstream"
import type { NatsApi } from "./connection.ts"
import { RECORD_SILENCE_MS, RECORD_WATCH_RETRY_MS } from "./limits.ts"
import type { Change } from "./record-index.ts"
import { recordOf, recordsPlace } from "./record-keys.ts"
import { info, wait } from "./reader.ts"

interface Waiting {
  readonly seq: number
  readonly resolve: (reached: boolean) => void
}

export class RecordWatch {
  private readonly nats: NatsApi
  private readonly onChange: (table: string, change: Change) => void
  /** Changes may have been missed. */
  private readonly onGap: () => void
  private messages: ConsumerMessages | undefined
  private waiting: Array<Waiting> = []
  private begun = false
  private ended = false
  private seenMs = 0
  /** Everything up to this sequence has been told. */
  private reached = 0

  constructor(
    nats: NatsApi,
    onChange: (table: string, change: Change) => void,
    onGap: () => void
  ) {
    this.nats = nats
    this.onChange = onChange
    this.onGap = onGap
  }

  begin(): void {
    if (this.begun) return
    this.begun = true
    void this.run()
  }

  end(): void {
    this.ended = true
    this.messages?.stop()
    for (const { resolve } of this.waiting.splice(0)) resolve(false)
  }

  /** Whether everything up to `seq` was told before the time is over. */
  async reach(seq: number, timeoutMs: number): Promise<boolean> {
    if (this.reached >= seq) return true
    if (this.ended) return false
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs)
      this.waiting.push({
        seq,
        resolve: (reached) => {
          clearTimeout(timer)
          resolve(reached)
        }
      })
    })
  }

  private async run(): Promise<void> {
    while (!this.ended && !this.nats.nc.isClosed()) {
      try {
        await this.follow()
      } catch {
        // The servers are away, or the stream has no leader: ranges ask the leader meanwhile.
      }
      if (!this.ended) await wait(RECORD_WATCH_RETRY_MS)
    }
    this.end()
  }

  private async follow(): Promise<void> {
    const { stream } = recordsPlace
    const { state } = await info(this.nats, stream)
    const consumer = await this.nats.js.consumers.get(stream, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: state.last_seq + 1,
      headers_only: true
    })
    this.onGap()
    this.seenMs = performance.now()
    this.messages = await consumer.consume({ callback: (message) => this.take(message) })
    this.advance(state.last_seq)
    await this.messages.closed()
  }

  private take(message: JsMsg): void {
    const { seq, subject } = message
    const nowMs = performance.now()
    // Marks of what was deleted meanwhile may be gone.
    if (!this.nats.nc.isClosed() && nowMs - this.seenMs > RECORD_SILENCE_MS) this.onGap()
    this.seenMs = nowMs
    const { key, table } = recordOf(subject)
    const isGone = message.headers?.has("KV-Operation") === true
    this.onChange(table, { key, seq, isGone })
    this.advance(seq)
  }

  private advance(seq: number): void {
    this.reached = Math.max(this.reached, seq)
    if (this.waiting.length === 0) return
    this.waiting = this.waiting.filter(({ resolve, seq: wanted }) => {
      if (wanted > this.reached) return true
      resolve(true)
      return false
    })
  }
}
