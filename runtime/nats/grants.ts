/** Messages that this node may decide only when the one that asks grants them (`moving.ts`). */
import { createInbox, type Msg, type NatsConnection } from "@nats-io/transport-node"
import { inboxes, isNoResponders } from "./inboxes.ts"
import { grantMs } from "./limits.ts"
import { isSaid, saidBy } from "./moving.ts"

/** `late`: nothing was heard, so it may have been granted, and is to be given back. */
export type GrantResult = "granted" | "refused" | "late"

interface Wanted {
  readonly reply: string
  readonly settle: (verdict: GrantResult) => void
  readonly deadline: NodeJS.Timeout
}

export class Grants {
  private readonly nc: NatsConnection
  private readonly node: string
  private readonly inbox = createInbox(inboxes)
  private readonly wanted = new Map<string, Wanted>()
  private readonly replies = new Set<string>()
  private count = 0

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.node = node
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.take(message.subject.slice(tokenAt), message)
      }
    })
  }

  /** Whether the message with this reply subject is asked for just now. */
  has(reply: string): boolean {
    return this.replies.has(reply)
  }

  /**
   * Asks for a message, telling in `lines` how the shard is held; `settle` is called once,
   * `GRANT_MS` later at most.
   */
  ask(reply: string, lines: string, settle: Wanted["settle"]): void {
    const token = (this.count++).toString(36)
    const deadline = setTimeout(() => this.settle(token, "late"), grantMs)
    this.wanted.set(token, { reply, settle, deadline })
    this.replies.add(reply)
    try {
      const headers = saidBy(this.node, "wanted", lines)
      this.nc.publish(reply, "", { reply: `${this.inbox}.${token}`, headers })
    } catch {
      // The connection is closed: nobody has heard of it.
      this.settle(token, "refused")
    }
  }

  private take(token: string, message: Msg): void {
    const granted = !isNoResponders(message) && isSaid("granted", message.headers)
    this.settle(token, granted ? "granted" : "refused")
  }

  private settle(token: string, verdict: GrantResult): void {
    const wanted = this.wanted.get(token)
    if (wanted === undefined) return
    this.wanted.delete(token)
    this.replies.delete(wanted.reply)
    clearTimeout(wanted.deadline)
    wanted.settle(verdict)
  }
}
