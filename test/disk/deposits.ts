/** Deposits into one mailbox of a faulty service, and verifies that no accepted one is lost. */
import { type Answer, basic, listMailbox, type Mailbox, notification, openMailbox, pathOf, postXml,
  send } from "../e2e/client.ts"

const answerWithinMs = 30_000

export class Deposits {
  readonly mailbox: Mailbox
  /** Paths of accepted notifications by description, in the order of their responses. */
  readonly accepted = new Map<string, string>()
  /** Descriptions without a success response: the service may have stored them. */
  readonly maybe = new Set<string>()

  private constructor(mailbox: Mailbox) {
    this.mailbox = mailbox
  }

  static async open(base: string, name: string): Promise<Deposits> {
    return new Deposits(await openMailbox(base, name))
  }

  /** Makes one deposit; returns its response, or undefined when there was none. */
  async make(base: string): Promise<Answer | undefined> {
    const description = `d${this.accepted.size + this.maybe.size}`
    this.maybe.add(description)
    const posted = postXml(base, this.mailbox.path, notification(description))
    const answer = await posted.catch(() => undefined)
    if (answer?.status !== 202) return answer
    this.maybe.delete(description)
    this.accepted.set(description, pathOf(answer.headers.get("location")))
    return answer
  }

  /** The first page, for a reader. */
  page(base: string): Promise<Answer> {
    const headers = { authorization: basic("reader", this.mailbox.password) }
    return send(base, this.mailbox.path, { headers, timeoutMs: answerWithinMs })
  }

  /** Throws when a notification is missing, doubled, or was never sent. */
  async verify(base: string): Promise<void> {
    const listed = await listMailbox(base, this.mailbox)
    const paths = new Map(listed.map(({ description, path }) => [description, path]))
    const wrong = [
      ...(paths.size === listed.length ? [] : ["something is there twice"]),
      ...[...this.accepted].flatMap(([description, path]) =>
        paths.get(description) === path ? [] : [`${description} is at ${paths.get(description)}`]
      ),
      ...[...paths.keys()].flatMap((description) =>
        this.accepted.has(description) || this.maybe.has(description)
          ? []
          : [`${description}: whose?`]
      )
    ]
    if (wrong.length > 0) throw new Error(wrong.slice(0, 10).join("\n"))
  }
}
