/** Gathers the messages of one turn of the event loop by their destination. */
import { bundleCharsMax, bundleMessagesMax } from "../../limits.ts"
import type { TurnWrites } from "../connection/index.ts"
import type { BundledMessage } from "./envelopes.ts"

/** Sends the messages of a turn for one destination together. */
export class Bundler<Message extends BundledMessage> {
  private readonly writes: TurnWrites
  private readonly send: (to: string, messages: ReadonlyArray<Message>) => void
  private waiting = new Map<string, Array<Message>>()

  /** `send` gets one message or several, up to the bounds of a bundle; it must not throw. */
  constructor(
    writes: TurnWrites,
    send: (to: string, messages: ReadonlyArray<Message>) => void
  ) {
    this.writes = writes
    this.send = send
  }

  add(to: string, message: Message): void {
    this.writes.expect()
    const waiting = this.waiting.get(to)
    if (waiting !== undefined) return void waiting.push(message)
    if (this.waiting.size === 0) this.writes.atEnd(() => this.flush())
    this.waiting.set(to, [message])
  }

  private flush(): void {
    const { waiting } = this
    this.waiting = new Map()
    for (const [to, messages] of waiting) this.sendBounded(to, messages)
  }

  private sendBounded(to: string, messages: ReadonlyArray<Message>): void {
    let bundle: Array<Message> = []
    let chars = 0
    for (const message of messages) {
      const isFull = bundle.length >= bundleMessagesMax ||
        chars + message.text.length > bundleCharsMax
      if (isFull && bundle.length > 0) {
        this.send(to, bundle)
        bundle = []
        chars = 0
      }
      bundle.push(message)
      chars += message.text.length
    }
    this.send(to, bundle)
  }
}
