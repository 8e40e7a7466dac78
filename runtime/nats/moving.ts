/**
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
 *    which was before the node took it; and `SETTLED_MS` is longer. The node itself says so of what
 *    it has not decided. So there is one copy then, and one node that decides on it.
 *
 * The third reason takes for granted that one message does not reach two nodes further apart than
 * `SETTLED_MS - MOVED_SAID_MS`. An owner that dies takes what it was granted with it: whoever asks
 * finds out by its deadline, as it is unknown whether the message was decided. Of a copy that comes
 * again while the node has it, the node says `taken`.
 *
 * Clients that are no nodes send one copy, and take the first answer.
 */
import type { MsgHdrs } from "@nats-io/transport-node"
import { ANSWERED_MS } from "./limits.ts"
import { rawHeaders } from "./requests.ts"

const name = "Restante"

/** Which node says so: a name that is new at each start. */
export const nodeHeader = "Restante-Node"

type Said = "again" | "granted" | "moved" | "refused" | "taken" | "wanted"

/** Lines of headers, each ended by CR LF, as a whole. */
export const headersText = (lines: string): string => `NATS/1.0\r\n${lines}\r\n`

export const say = (said: Said): string => `${name}: ${said}\r\n`

/** The headers by which a node says so. */
export const saidBy = (node: string, said: Said): MsgHdrs =>
  rawHeaders(headersText(`${say(said)}${nodeHeader}: ${node}\r\n`))

interface Headers {
  readonly get: (name: string) => string
}

/** Whether this was said in the headers of a message. */
export const isSaid = (said: Said, headers: Headers | undefined): boolean =>
  headers !== undefined && headers.get(name) === said

/** The messages that this node has, by their reply subjects: for one that comes again. */
export class Taken {
  private readonly underWay = new Set<string>()
  private answered = new Set<string>()
  private answeredBefore = new Set<string>()
  private turnedMs = 0

  has(reply: string): boolean {
    return this.underWay.has(reply) || this.answered.has(reply) || this.answeredBefore.has(reply)
  }

  add(reply: string): void {
    this.underWay.add(reply)
  }

  /** It is answered, or was not taken in the end. */
  over(reply: string, answered: boolean): void {
    this.underWay.delete(reply)
    if (!answered || reply === "") return
    const nowMs = performance.now()
    if (nowMs - this.turnedMs > ANSWERED_MS) {
      this.answeredBefore = this.answered
      this.answered = new Set()
      this.turnedMs = nowMs
    }
    this.answered.add(reply)
  }
}
