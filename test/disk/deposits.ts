/** Deposits into one mailbox of a service under faults; whether all that were kept are there. */
import { type Answer, basic, listMailbox, type Mailbox, notification, openMailbox, pathOf, postXml,
  send } from "../e2e/client.ts"

const answerWithinMs = 30_000

export class Deposits {
  readonly mailbox: Mailbox
  /** Paths by description, in the order of their answers. */
  readonly kept = new Map<string, string>()
  /** Refused, or without an answer: they may have been kept. */
  readonly maybe = new Set<string>()

  private constructor(mailbox: Mailbox) {
    this.mailbox = mailbox
  }

  static async open(base: string, name: string): Promise<Deposits> {
    return new Deposits(await openMailbox(base, name))
  }

  /** One more; its answer, or undefined when there was none. */
  async make(base: string): Promise<Answer | undefined> {
    const description = `d${this.kept.size + this.maybe.size}`
    this.maybe.add(description)
    const posted = postXml(base, this.mailbox.path, notification(description))
    const answer = await posted.catch(() => undefined)
    if (answer?.status !== 202) return answer
    this.maybe.delete(description)
    this.kept.set(description, pathOf(answer.headers.get("location")))
    return answer
  }

  /** The first page, as any reader gets it. */
  page(base: string): Promise<Answer> {
    const headers = { authorization: basic("reader", this.mailbox.password) }
    return send(base, this.mailbox.path, { headers, timeoutMs: answerWithinMs })
  }

  /** Throws telling what is missing, doubled, or there though nobody sent it. */
  async verify(base: string): Promise<void> {
    const listed = await listMailbox(base, this.mailbox)
    const paths = new Map(listed.map(({ description, path }) => [description, path]))
    const wrong = [
      ...(paths.size === listed.length ? [] : ["something is there twice"]),
      ...[...this.kept].flatMap(([description, path]) =>
        paths.get(description) === path ? [] : [`${description} is at ${paths.get(description)}`]
      ),
      ...[...paths.keys()].flatMap((description) =>
        this.kept.has(description) || this.maybe.has(description) ? [] : [`${description}: whose?`]
      )
    ]
    if (wrong.length > 0) throw new Error(wrong.slice(0, 10).join("\n"))
  }
}
