/** The outgoing mailbox (protocol §1.3): sending, and how each recipient stands. */
import { removeResource } from "./content.ts"
import { answerMs, longPollSeconds, lookMs, settleMs } from "./limits.ts"
import { itemOf, type NotificationInput } from "./notifications.ts"
import { backoffMs, ConnectionError, either, type HttpTransport, type JsonObject,
  type ListingOptions, listOf, newKey, numberOf, optionalNumber, optionalText, pagesOf, parseObject,
  pause, textOf, Unavailable, unexpected, withQuery, wordOf } from "./transport/index.ts"

const recipientStatuses = ["waiting", "retry", "success", "failed"] as const

const statuses = ["sent", "waiting", "failed"] as const

/** `waiting`: not tried yet. `retry`: tried, and will be again. `failed`: given up. */
export type RecipientStatus = typeof recipientStatuses[number]

/** `sent`: all recipients have it. `failed`: all have ended, and not all of them have it. */
export type SentStatus = typeof statuses[number]

/** How one recipient stands. */
export interface Recipient {
  readonly href: string
  readonly status: RecipientStatus
  readonly attempts: number
  /** When the last attempt ended and when the next is due, RFC 3339. */
  readonly last: string | undefined
  readonly next: string | undefined
  /** Status code of the last answer. */
  readonly code: number | undefined
  /** The stored notification, at the recipient. */
  readonly location: string | undefined
  /** What was wrong with the last attempt. */
  readonly problem: string | undefined
}

/** How a notification stands. */
export interface NotificationProgress {
  readonly href: string
  /** When it was queued, RFC 3339. */
  readonly time: string
  readonly status: SentStatus
  readonly recipients: ReadonlyArray<Recipient>
  readonly etag: string | undefined
}

/** A notification to be sent. */
export interface Sending extends NotificationInput {
  /** URIs of mailboxes, here or anywhere. */
  readonly to: string | ReadonlyArray<string>
  /** Whether recipients are told the URI of the outgoing mailbox. */
  readonly from?: boolean | undefined
}

/** How it is sent. */
export interface SendOptions {
  /**
   * Made up by default. Give one of your own, and keep it, when the notification must not be sent
   * twice even if the program ends before it learns that it was sent.
   */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Waiting for recipients. */
export interface Waiting {
  /** What is waited for; that all recipients have ended, unless given. */
  readonly until?: ((standing: NotificationProgress) => boolean) | undefined
  /** Told how it stands, at first and after each change. */
  readonly onChange?: ((standing: NotificationProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

const recipientOf = (document: JsonObject): Recipient => ({
  href: textOf(document, "href"),
  status: wordOf(document, "status", recipientStatuses),
  attempts: numberOf(document, "attempts"),
  last: optionalText(document, "last"),
  next: optionalText(document, "next"),
  code: optionalNumber(document, "code"),
  location: optionalText(document, "location"),
  problem: optionalText(document, "problem")
})

const standingOf = (document: JsonObject, headers: Headers): NotificationProgress => ({
  href: textOf(document, "href"),
  time: textOf(document, "time"),
  status: wordOf(document, "status", statuses),
  recipients: listOf(document, "recipient").map(recipientOf),
  etag: headers.get("etag") ?? undefined
})

/** Whether no attempt is to come. */
export const isFinal = ({ recipients }: NotificationProgress): boolean =>
  recipients.every(({ status }) => status === "success" || status === "failed")

/** A notification that has been sent: durably queued, and relayed by the service. */
export class SentNotification {
  readonly href: string
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport, href: string) {
    this.transport = transport
    this.href = href
  }

  /** How it stands (A6). */
  async status(signal?: AbortSignal): Promise<NotificationProgress> {
    const asked = { method: "GET", uri: this.href, signal } as const
    const { document, headers } = await this.transport.json(asked)
    return standingOf(document, headers)
  }

  async recipients(signal?: AbortSignal): Promise<ReadonlyArray<Recipient>> {
    return (await this.status(signal)).recipients
  }

  /** How it stands, and again after each change, without end; over lost connections, too. */
  async *changes(signal?: AbortSignal): AsyncGenerator<NotificationProgress, void, void> {
    let standing = await this.status(signal)
    yield standing
    for (let lost = 0;;) {
      try {
        const changed = await this.changed(standing, signal)
        lost = 0
        if (changed !== undefined) yield standing = changed
        // What answers at once that nothing has changed does not wait.
        const ms = changed === undefined ? lookMs : settleMs
        await pause(ms, either(this.transport.endpoint.signal, signal))
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof Unavailable)) throw error
        lost += 1
        await pause(backoffMs(lost), either(this.transport.endpoint.signal, signal))
      }
    }
  }

  /**
   * Waits until all recipients have ended, or for what `until` says. Attempts go on for days, so
   * that a signal such as `AbortSignal.timeout` is what bounds the wait.
   */
  async wait({ onChange, signal, until = isFinal }: Waiting = {}): Promise<NotificationProgress> {
    for await (const standing of this.changes(signal)) {
      onChange?.(standing)
      if (until(standing)) return standing
    }
    return unexpected("changes have no end")
  }

  /** Tries the failed recipients again; Conflict when none has failed. */
  async retry(): Promise<NotificationProgress> {
    const { document, headers } = await this.transport.json({
      method: "POST",
      uri: `${this.href}/retry`,
      headers: { "idempotency-key": newKey() }
    })
    return standingOf(document, headers)
  }

  /** A8: no attempt starts afterwards. */
  delete(): Promise<void> {
    return removeResource(this.transport, this.href)
  }

  private async changed(
    { etag }: NotificationProgress,
    signal: AbortSignal | undefined
  ): Promise<NotificationProgress | undefined> {
    const { headers, status, text } = await this.transport.text({
      method: "GET",
      uri: this.href,
      headers: { "if-none-match": etag, prefer: `wait=${longPollSeconds}` },
      also: [304],
      withinMs: answerMs + longPollSeconds * 1000,
      attempts: 1,
      signal
    })
    return status === 304 ? undefined : standingOf(parseObject(text), headers)
  }
}

/** One line of an outgoing mailbox. */
export interface Sent {
  readonly href: string
  readonly time: string
  readonly status: SentStatus
}

/** The caller's own outgoing mailbox. */
export class Outgoing {
  private readonly transport: HttpTransport
  private readonly account: string | undefined
  private path: Promise<string> | undefined

  constructor(transport: HttpTransport, account: string | undefined) {
    this.transport = transport
    this.account = account
  }

  /** A5: once it resolves, the notification is durably queued. */
  async send(sending: Sending, options: SendOptions = {}): Promise<SentNotification> {
    const { from, to } = sending
    const document = {
      to: typeof to === "string" ? [to] : to,
      ...from === true ? { from: "true" } : {},
      item: itemOf(sending)
    }
    const { headers } = await this.transport.text({
      method: "POST",
      uri: await this.href(),
      headers: {
        "content-type": "application/json",
        "idempotency-key": options.idempotencyKey ?? newKey()
      },
      body: JSON.stringify(document),
      signal: options.signal
    })
    return this.sent(headers.get("location") ?? unexpected("no Location"))
  }

  /** A notification that was sent earlier, by its URI. */
  sent(href: string): SentNotification {
    return new SentNotification(this.transport, href)
  }

  /** A7: newest first. */
  async *list(
    { pageSize: limit, signal, status }: ListingOptions & {
      readonly status?: SentStatus | undefined
    } = {}
  ): AsyncGenerator<Sent, void, void> {
    const first = withQuery(await this.href(), { status, limit })
    for await (const page of pagesOf(this.transport, first, { signal })) {
      for (const one of listOf(page, "notification")) {
        yield {
          href: textOf(one, "href"),
          time: textOf(one, "time"),
          status: wordOf(one, "status", statuses)
        }
      }
    }
  }

  /** Tries all failed recipients of what was sent since then again. */
  async retrySince(
    since: string
  ): Promise<{ readonly notifications: number; readonly recipients: number }> {
    let [notifications, recipients] = [0, 0]
    const path: string = withQuery(`${await this.href()}/retry`, { since })
    for (let uri: string | undefined = path; uri !== undefined;) {
      const answer: { readonly document: JsonObject } = await this.transport.json({
        method: "POST",
        uri,
        headers: { "idempotency-key": newKey() }
      })
      notifications += numberOf(answer.document, "notifications")
      recipients += numberOf(answer.document, "recipients")
      uri = optionalText(answer.document, "next")
    }
    return { notifications, recipients }
  }

  private href(): Promise<string> {
    const { account } = this
    if (account !== undefined) return Promise.resolve(`/outgoing/${encodeURIComponent(account)}`)
    const asking = this.path ?? this.transport
      .json({ method: "GET", uri: "/outgoing", redirect: "follow" })
      .then(({ document }) => textOf(document, "href"))
    this.path = asking
    asking.catch(() => this.path = undefined)
    return asking
  }
}
