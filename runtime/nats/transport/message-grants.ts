/** Messages that this node may decide only when the one that asks grants them (`moving.ts`). */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { answeredKeepMs, grantTimeoutMs, pastTenureKeepMs } from "../../limits.ts"
import type { ShardTenure } from "../../ports/index.ts"
import { isNodeInbox, isNoResponders, nodeInboxPrefix, rawHeaders } from "../connection/index.ts"

const name = "Restante"

/** Which node says so: a name that is new at each start. */
export const nodeHeader = "Restante-Node"

type MessageMark =
  | "again"
  | "answered"
  | "gone"
  | "granted"
  | "moved"
  | "refused"
  | "taken"
  | "wanted"

/** Where all nodes hear who asks what became of a message: its reply subject, and a claim. */
export const tenureInquiries = "restante.held.nodes"

/** Lines of headers, each ended by CR LF, as a whole. */
export const headersText = (lines: string): string => `NATS/1.0\r\n${lines}\r\n`

export const markLine = (said: MessageMark): string => `${name}: ${said}\r\n`

/** The headers by which a node says so. */
export const markedHeaders = (node: string, said: MessageMark, lines = ""): MsgHdrs =>
  rawHeaders(headersText(`${markLine(said)}${nodeHeader}: ${node}\r\n${lines}`))

interface Headers {
  readonly get: (name: string) => string
}

/** Whether this was said in the headers of a message. */
export const isMarked = (said: MessageMark, headers: Headers | undefined): boolean =>
  headers !== undefined && headers.get(name) === said

/** Reply subjects of nodes, each a number of its node's inbox: these take little room. */
class Replies {
  private readonly inboxes = new Map<string, Set<number>>()

  has(reply: string): boolean {
    const at = reply.lastIndexOf(".")
    return this.inboxes.get(reply.slice(0, at))?.has(numberAt(reply, at)) === true
  }

  add(reply: string): void {
    const at = reply.lastIndexOf(".")
    const inbox = reply.slice(0, at)
    const numbers = this.inboxes.get(inbox)
    if (numbers === undefined) this.inboxes.set(inbox, new Set([numberAt(reply, at)]))
    else numbers.add(numberAt(reply, at))
  }
}

const numberAt = (reply: string, at: number): number => Number.parseInt(reply.slice(at + 1), 36)

/** The messages of nodes that this node has, by their reply subjects: for one that comes again. */
export class ReceivedMessages {
  private readonly underWay = new Set<string>()
  private answered = new Replies()
  private answeredBefore = new Replies()
  private turnedMs = 0

  /** What has become of a message; undefined when this node has not taken it. */
  of(reply: string): "answered" | "taken" | undefined {
    if (this.underWay.has(reply)) return "taken"
    const isOver = this.answered.has(reply) || this.answeredBefore.has(reply)
    return isOver ? "answered" : undefined
  }

  add(reply: string): void {
    this.underWay.add(reply)
  }

  /** It is answered, or was not taken in the end. */
  over(reply: string, answered: boolean): void {
    this.underWay.delete(reply)
    if (!answered || !isNodeInbox(reply)) return
    const nowMs = performance.now()
    if (nowMs - this.turnedMs > answeredKeepMs) {
      this.answeredBefore = this.answered
      this.answered = new Replies()
      this.turnedMs = nowMs
    }
    this.answered.add(reply)
  }
}

/*
 * The times that shards are held, as nodes tell each other of them: which claim, since when, and
 * which claim was before. By these who asks finds out whether anybody else can have decided on a
 * message (`moving.ts`).
 */

const tenureHeader = "Restante-Held"

/** What a node says of a time that it holds, or held, a shard. */
export interface TenureReport extends ShardTenure {
  /** So long ago it began, ms. */
  readonly forMs: number
}

/** The line of a header that tells of it; nothing where a node stands alone. */
export const tenureLine = (held: ShardTenure | undefined, sinceMs: number): string => {
  if (held === undefined) return ""
  const forMs = Math.floor(performance.now() - sinceMs)
  const { after = 0, claim, orphaned } = held
  return `${tenureHeader}: ${claim} ${forMs} ${after} ${orphaned ? 1 : 0}\r\n`
}

export const tenureOf = (
  headers: { readonly get: (name: string) => string } | undefined
): TenureReport | undefined => {
  const text = headers?.get(tenureHeader) ?? ""
  if (text === "") return undefined
  const [claim = 0, forMs = 0, after = 0, orphaned = 0] = text.split(" ").map(Number)
  return { claim, forMs, after: after === 0 ? undefined : after, orphaned: orphaned === 1 }
}

interface Past {
  readonly line: () => string
  readonly endedMs: number
}

/** The times that are over, for as long as somebody may ask about them. */
export class PastTenures {
  private readonly past = new Map<number, Past>()

  ended(held: ShardTenure | undefined, sinceMs: number): void {
    if (held === undefined) return
    const endedMs = performance.now()
    for (const [claim, one] of this.past) {
      if (endedMs - one.endedMs > pastTenureKeepMs) this.past.delete(claim)
    }
    this.past.set(held.claim, { line: () => tenureLine(held, sinceMs), endedMs })
  }

  /** The line that tells of the time with this claim; undefined when it is not over, or unknown. */
  lineOf(claim: number): string | undefined {
    return this.past.get(claim)?.line()
  }
}

/*
 * What nodes say to each other beside messages and replies, while shards move.
 *
 * For a short while a message may reach two nodes: the last owner of its shard, which says `moved`,
 * and the next one. Who hears `moved` sends the same message again with the same reply subject,
 * marked `again`; so several copies are about, and the shard may move on meanwhile. A message is
 * decided once all the same, for these reasons:
 *
 * 1. A node decides without a word only on a first copy, of a shard that it has held for
 *    `SETTLED_MS`. Every other copy it must be granted first: it says `wanted` to the one that
 *    asks, which answers `granted` or `refused`.
 * 2. Who asks grants a message to one node, and to no other after it, unless that one says `moved`
 *    and so gives it back undecided. It grants nothing once it has an answer or has given up. It
 *    is the only one that grants: there is nothing that two nodes could see differently. So no
 *    message is decided on two grants, however late anything arrives and whoever dies meanwhile.
 * 3. It sends other copies only once somebody has said `moved`. Of a first copy that a node decides
 *    on without a word nobody says so. Its next owner has subscribed later, and does not get that
 *    copy. Its last owner says nothing of a first copy `MOVED_SAID_MS` after it gave the shard up,
 *    which was before the node took it; and `SETTLED_MS` is longer. One that lost the shard without
 *    giving it up, as it stood still or was cut off, does not say so at all, but `gone`. The node
 *    itself says so of what it has not decided. So there is one copy then, and one node that
 *    decides on it.
 *
 * The third reason takes for granted that one message does not reach two nodes further apart than
 * `SETTLED_MS - MOVED_SAID_MS`. An owner that dies takes what it was granted with it: whoever asks
 * finds out by its deadline, as it is unknown whether the message was decided. Of a copy that comes
 * again the node says `taken` while it has it, and `answered` for `ANSWERED_MS` from then on.
 *
 * Messages and answers can be lost, or be late, when a process or a server stands still and when a
 * connection breaks. A last owner that reads a first copy too late for `moved` says `gone`: it has
 * not decided. And of what nothing was heard for `PROBE_MS` another copy is sent, though nobody has
 * said `moved`. The node that wants it tells which claim it holds the shard by, for how long, and
 * which claim was before. It is granted the message when nobody else can have decided on it:
 *
 * 4. It has held the shard since before the message was sent. Earlier owners had given it up by
 *    then, there is no later one, and it would know if it had decided: it says `answered`.
 * 5. Or the owner by the claim before says `gone`, and that one had held the shard since before the
 *    message was sent, or the owner before it is known to be `gone` too, and so on. After an owner
 *    that has said nothing by itself all nodes are asked (`inquiries`); the one it was answers.
 *
 * An owner that died says nothing. Whoever took the shard from it without its giving it up says so
 * too, and then who asks knows at once that it will never know.
 *
 * Clients that are no nodes send one copy, and take the first answer.
 */

/** `late`: nothing was heard, so it may have been granted, and is to be given back. */
export type GrantResult = "granted" | "refused" | "late"

interface Wanted {
  readonly reply: string
  readonly settle: (verdict: GrantResult) => void
  readonly deadline: NodeJS.Timeout
}

export class GrantRequests {
  private readonly nc: NatsConnection
  private readonly node: string
  private readonly inbox = createInbox(nodeInboxPrefix)
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
    const deadline = setTimeout(() => this.settle(token, "late"), grantTimeoutMs)
    this.wanted.set(token, { reply, settle, deadline })
    this.replies.add(reply)
    try {
      const headers = markedHeaders(this.node, "wanted", lines)
      this.nc.publish(reply, "", { reply: `${this.inbox}.${token}`, headers })
    } catch {
      // The connection is closed: nobody has heard of it.
      this.settle(token, "refused")
    }
  }

  private take(token: string, message: Msg): void {
    const granted = !isNoResponders(message) && isMarked("granted", message.headers)
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
