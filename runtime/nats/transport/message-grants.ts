/**
 * At most one node decides a message, however often its shard moves and however often it is sent.
 *
 * While a shard moves, a message may reach two nodes: the last owner, which answers `moved`, and
 * the next one. The requester then sends the message again, with the same reply subject and the
 * mark `resent`. So several copies exist, and the shard may move on meanwhile. The rules:
 *
 * 1. A node decides at once only a first copy, and only after it has held the shard for
 *    `tenureSettledMs`. For every other copy it sends `grant-request` to the requester, which
 *    answers `granted` or `refused`.
 * 2. The requester grants a message to one node. It grants the message to another node only after
 *    the first one answered `moved` and so gave it back undecided. It grants nothing after it has
 *    the reply or has given up. Only the requester grants, so two nodes cannot see it differently.
 * 3. The requester resends after `moved`. If a node decides the first copy at once, nobody reports
 *    `moved`: the next owner subscribed later and did not get that copy. The last owner stops
 *    answering `moved` to first copies `movedReplyLatestMs` after it gave the shard up, and
 *    `tenureSettledMs` is longer. A node that lost the shard without giving it up (a paused
 *    process, a cut connection) answers `undecided` instead. So one copy exists, and one node
 *    decides it.
 *
 * The first copy of an ask may travel in a bundle, to the node that answered before (`asks.ts`).
 * That node takes each bundle once. The requester sends the first copy again, to the subject of the
 * actor, only after that node answered `elsewhere`, or when nobody received the bundle. So there is
 * one first copy that somebody may decide, and the rules hold for it.
 *
 * Rule 3 assumes that one message does not reach two nodes further apart than
 * `tenureSettledMs - movedReplyLatestMs`. A message that was granted to a node that dies ends as
 * AskTimeout, because nobody knows whether that node decided it. When a copy arrives again at the
 * node that has it, the node answers `deciding`, and `answered` for `answeredKeepMs` afterwards.
 *
 * A paused process, a stopped server or a broken connection loses messages or delays them. If the
 * requester receives nothing for `silenceResendMs`, it resends although nobody reported `moved`. A
 * grant request names the claim by which the node holds the shard, the age of that claim, and the
 * claim before it (a {@link TenureReport}). The requester grants when no other node can have
 * decided the message:
 *
 * 4. The node has held the shard since before the message was sent. Earlier owners had given it up
 *    by then, there is no later one, and the node itself would answer `answered`.
 * 5. Or the owner by the previous claim answers `undecided` and had held the shard since before the
 *    message was sent, or the owner before that one is also known as undecided, and so on. If such
 *    an owner has not reported by itself, the requester asks all nodes (`tenureInquiries`).
 *
 * An owner that died reports nothing. The node that took its shard marks its own tenure as
 * `orphaned`, and the requester fails at once with AskTimeout. Clients that are no nodes send one
 * copy and take the first answer.
 *
 * Somebody may repeat a message that was on its way. Copies of a node's message have its reply
 * subject. A node that still knows that subject decides nothing. It forgets it after
 * `answeredKeepMs`, or with its process; then the message is older than `envelopeAgeMaxMs` or than
 * the tenure, and needs a grant, which nobody gives for a message that has ended.
 *
 * One queue group for each shard cannot replace the grants; `test/runtime/nats/moving.test.ts`
 * shows both failures. (a) A paused owner stays subscribed after another node has taken its shard,
 * so the server sends it every second message of a shard that has a live owner ("are answered by
 * the next owner while the last one stands still"); lost messages end as AskTimeout ("are answered
 * though messages are lost"). (b) If the requester resends after silence, then A receives the first
 * copy, decides it slowly or its reply is late, the shard moves to B, and B decides the second
 * copy: the message is decided twice ("are answered, each decided once"), even if each node
 * remembers what it has received.
 */
import { createInbox, type NatsConnection } from "@nats-io/transport-node"
import { answeredKeepMs, grantTimeoutMs, pastTenureKeepMs } from "../../limits.ts"
import type { ShardTenure } from "../../ports/index.ts"
import { isNodeInbox, isNoResponders, nodeInboxPrefix } from "../connection/index.ts"
import type { Envelopes } from "./envelopes.ts"

/** All nodes subscribe to it. The message is `<reply subject> <claim>`. */
export const tenureInquiries = "restante.tenure.nodes"

/** What a node reports of a period in which it holds, or held, a shard. */
export interface TenureReport extends ShardTenure {
  /** Time since it began, ms. */
  readonly forMs: number
}

/** The header of a tenure; undefined where the node has no claim, since it is alone. */
export const tenureText = (
  tenure: ShardTenure | undefined,
  sinceMs: number
): { readonly tenure?: string } => {
  if (tenure === undefined) return {}
  const forMs = Math.floor(performance.now() - sinceMs)
  const { after = 0, claim, orphaned } = tenure
  return { tenure: `${claim} ${forMs} ${after} ${orphaned ? 1 : 0}` }
}

/** Reads the header of a tenure. */
export const tenureOf = (text: string | undefined): TenureReport | undefined => {
  if (text === undefined) return undefined
  const [claim = 0, forMs = 0, after = 0, orphaned = 0] = text.split(" ").map(Number)
  return { claim, forMs, after: after === 0 ? undefined : after, orphaned: orphaned === 1 }
}

/** The tenures that this node has ended, for as long as a requester may inquire about them. */
export class PastTenures {
  private readonly byClaim = new Map<
    number,
    { readonly tenure: ShardTenure; readonly sinceMs: number; readonly endedMs: number }
  >()

  add(tenure: ShardTenure | undefined, sinceMs: number): void {
    if (tenure === undefined) return
    const endedMs = performance.now()
    for (const [claim, past] of this.byClaim) {
      if (endedMs - past.endedMs > pastTenureKeepMs) this.byClaim.delete(claim)
    }
    this.byClaim.set(tenure.claim, { tenure, sinceMs, endedMs })
  }

  /** The header of an ended tenure; undefined when it has not ended, or is unknown. */
  textOf(claim: number): ReturnType<typeof tenureText> | undefined {
    const past = this.byClaim.get(claim)
    return past && tenureText(past.tenure, past.sinceMs)
  }
}

/** A reply subject `<inbox>.<number in base 36>`. */
interface ReplySubject {
  readonly inbox: string
  readonly number: number
}

const replySubjectOf = (reply: string): ReplySubject => {
  const dot = reply.lastIndexOf(".")
  return { inbox: reply.slice(0, dot), number: Number.parseInt(reply.slice(dot + 1), 36) }
}

/** A set of reply subjects: a number takes less memory than a text. */
class ReplySubjects {
  private readonly byInbox = new Map<string, Set<number>>()

  has({ inbox, number }: ReplySubject): boolean {
    return this.byInbox.get(inbox)?.has(number) === true
  }

  add({ inbox, number }: ReplySubject): void {
    const numbers = this.byInbox.get(inbox)
    if (numbers === undefined) this.byInbox.set(inbox, new Set([number]))
    else numbers.add(number)
  }
}

/**
 * The messages that this node decides or has answered, by reply subject. Answered ones are kept in
 * two generations of `answeredKeepMs`.
 */
export class ReceivedMessages {
  private readonly deciding = new Set<string>()
  private answered = new ReplySubjects()
  private answeredBefore = new ReplySubjects()
  private rotatedMs = 0

  /** undefined: this node has not begun to decide the message. */
  statusOf(reply: string): "answered" | "deciding" | undefined {
    if (this.deciding.has(reply)) return "deciding"
    const subject = replySubjectOf(reply)
    return this.answered.has(subject) || this.answeredBefore.has(subject) ? "answered" : undefined
  }

  begin(reply: string): void {
    this.deciding.add(reply)
  }

  /** `answered`: false when the node gave the message back undecided. */
  end(reply: string, answered: boolean): void {
    this.deciding.delete(reply)
    if (!answered || !isNodeInbox(reply)) return
    const nowMs = performance.now()
    if (nowMs - this.rotatedMs > answeredKeepMs) {
      this.answeredBefore = this.answered
      this.answered = new ReplySubjects()
      this.rotatedMs = nowMs
    }
    this.answered.add(replySubjectOf(reply))
  }
}

/** `timeout`: the requester may have granted the message, so the node must give it back. */
export type GrantResult = "granted" | "refused" | "timeout"

interface GrantRequest {
  readonly reply: string
  readonly end: (result: GrantResult) => void
  readonly timer: NodeJS.Timeout
}

/** The grant requests of this node that await an answer. */
export class GrantRequests {
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly inbox = createInbox(nodeInboxPrefix)
  private readonly byToken = new Map<string, GrantRequest>()
  private readonly replies = new Set<string>()
  private count = 0

  constructor(nc: NatsConnection, envelopes: Envelopes, node: string) {
    this.envelopes = envelopes
    this.node = node
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, answer) => {
        if (error !== null) return
        const token = answer.subject.slice(tokenAt)
        if (isNoResponders(answer)) return this.end(token, "refused")
        const envelope = envelopes.receive("answer", answer)
        if (envelope === undefined) return
        this.end(token, envelope.mark === "granted" ? "granted" : "refused")
      }
    })
  }

  /** Whether a request for the message with this reply subject is pending. */
  has(reply: string): boolean {
    return this.replies.has(reply)
  }

  /** Requests the grant of a message; calls `end` once, after `grantTimeoutMs` at the latest. */
  send(reply: string, tenure: { readonly tenure?: string }, end: GrantRequest["end"]): void {
    const token = (this.count++).toString(36)
    const timer = setTimeout(() => this.end(token, "timeout"), grantTimeoutMs)
    this.byToken.set(token, { reply, end, timer })
    this.replies.add(reply)
    try {
      const { node } = this
      const fields = { mark: "grant-request", node, reply: `${this.inbox}.${token}` } as const
      this.envelopes.publish("answer", reply, "", { ...fields, ...tenure })
    } catch {
      // The connection is closed: the request was not sent.
      this.end(token, "refused")
    }
  }

  private end(token: string, result: GrantResult): void {
    const request = this.byToken.get(token)
    if (request === undefined) return
    this.byToken.delete(token)
    this.replies.delete(request.reply)
    clearTimeout(request.timer)
    request.end(result)
  }
}
