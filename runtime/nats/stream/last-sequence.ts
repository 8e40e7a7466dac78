/**
 * A sequence of a stream that covers whatever was acknowledged, asked for many at a time: that of a
 * mark that a majority has stored, or the last one by the word of a server that is alone.
 */
import { type NatsApi, resendUntilAnswered, retryUntilDeadline } from "../connection/index.ts"
import { streamInfo } from "./reader.ts"

export interface Last {
  readonly seq: number
  /** When the stream was made. */
  readonly created: string
}

export class LastSequence {
  private readonly nats: NatsApi
  private readonly stream: string
  /** What was asked already; and what will be asked after it. */
  private asked: Promise<Last> | undefined
  private next: Promise<Last> | undefined

  constructor(nats: NatsApi, stream: string) {
    this.nats = nats
    this.stream = stream
  }

  /** By a question that goes out after this call, so whatever was acknowledged before is in it. */
  ask(): Promise<Last> {
    if (this.asked === undefined) return this.send()
    this.next ??= this.asked.then(() => this.send(), () => this.send())
    return this.next
  }

  private send(): Promise<Last> {
    this.next = undefined
    const asked = this.question()
    this.asked = asked
    const done = () => {
      if (this.asked === asked) this.asked = undefined
    }
    asked.then(done, done)
    return asked
  }

  private async question(): Promise<Last> {
    const { nats, stream } = this
    const [mark, { created, state }] = await Promise.all([
      nats.readBarrier(stream),
      retryUntilDeadline(() => resendUntilAnswered(() => streamInfo(nats, stream)))
    ])
    return { created, seq: mark?.seq ?? state.last_seq }
  }
}
