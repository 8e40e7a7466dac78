/**
 * What nodes say to each other beside messages and replies, while shards move. For a short while
 * a message may reach two nodes: the last owner, which says `moved`, and the next one, which takes
 * it. So who hears `moved` still waits for a reply, and sends the same message again with the same
 * reply subject, marked `again`. The owner knows by that subject what it has already: it says
 * `taken`, and decides on it once.
 */
import { ANSWERED_MS } from "./limits.ts"

const name = "Restante"

type Said = "moved" | "taken" | "again"

/** Lines of headers, each ended by CR LF, as a whole. */
export const headersText = (lines: string): string => `NATS/1.0\r\n${lines}\r\n`

export const say = (said: Said): string => `${name}: ${said}\r\n`

/** Whether this was said in the headers of a message. */
export const isSaid = (said: Said, headers: { get: (name: string) => string } | undefined) =>
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
