/** The outgoing mailbox (protocol §1.3): sending, and the progress for each recipient. */
import { type RecordedAttempt, recordedAttemptOf } from "./attempts/index.ts"
import { changePauseMs, longPollSeconds, pauseChangesMax, pollIntervalMs,
  responseMs } from "./limits.ts"
import { itemOf, type NotificationInput } from "./notifications.ts"
import { backoffMs, ConnectionError, type DocumentResponse, type HttpTransport, type JsonObject,
  type ListingOptions, listOf, locationOf, numberOf, optionalNumber, optionalText, pathOf,
  type PostOptions, RemoteResource, textOf, Unavailable, unexpected, withQuery,
  wordOf } from "./transport/index.ts"

const recipientStatuses = ["waiting", "retry", "success", "failed"] as const

const statuses = ["sent", "waiting", "failed"] as const

/**
 * `waiting`: before the first attempt. `retry`: before a further one. `failed`: no more attempts.
 */
export type RecipientStatus = typeof recipientStatuses[number]

/** `sent`: all recipients have it. `failed`: no attempt follows, and some do not have it. */
export type SentStatus = typeof statuses[number]

/** The progress for one recipient. */
export interface Recipient {
  readonly href: string
  readonly status: RecipientStatus
  readonly attempts: number
  /** When the last attempt ended and when the next is due, RFC 3339. */
  readonly last: string | undefined
  readonly next: string | undefined
  /** Status code of the last response. */
  readonly code: number | undefined
  /** The stored notification, at the recipient; undefined once it was replaced or withdrawn. */
  readonly location: string | undefined
  /** The problem of the last attempt. */
  readonly problem: string | undefined
  /** Since when a pause of the outgoing mailbox keeps it back, RFC 3339. */
  readonly paused: string | undefined
}

/** The progress of a notification. */
export interface NotificationProgress {
  readonly href: string
  /** When it was queued, RFC 3339. */
  readonly time: string
  readonly status: SentStatus
  /** When it was last replaced, and when it was withdrawn, RFC 3339. */
  readonly replaced: string | undefined
  readonly withdrawn: string | undefined
  readonly recipients: ReadonlyArray<Recipient>
  readonly etag: string | undefined
}

/** The progress of a notification in numbers. */
export interface ProgressSummary {
  readonly status: SentStatus
  /** Recipients by status; a status that none has is missing. */
  readonly counts: Readonly<Partial<Record<RecipientStatus, number>>>
}

/**
 * One attempt at a recipient. What follows may also be `follow-up` (what has replaced or withdrawn
 * the notification), `permanent` (another attempt would not help) or `given-up`. Headers and answer
 * are those of a failure.
 */
export interface RecipientAttempt extends RecordedAttempt {
  /** The URI of the recipient. */
  readonly recipient: string
  /** Of the attempts there, from 1. */
  readonly number: number
}

/** The attempts of a notification. */
export interface RecipientAttempts {
  /** The newest first. */
  readonly attempts: ReadonlyArray<RecipientAttempt>
  /** How many more were made, which the service has not kept. */
  readonly dropped: number
}

/** What replaces a notification; its recipients stay the same. */
export interface Replacement extends NotificationInput {
  /** Whether recipients receive the URI of the outgoing mailbox. */
  readonly from?: boolean | undefined
}

/** A notification to send. */
export interface Sending extends NotificationInput {
  /** URIs of mailboxes, at this service or elsewhere. */
  readonly to: string | ReadonlyArray<string>
  /** Whether recipients receive the URI of the outgoing mailbox. */
  readonly from?: boolean | undefined
}

/**
 * How to send. Store your own `idempotencyKey` when the notification must not be sent twice even
 * if the program ends before it receives the response.
 */
export type SendOptions = PostOptions

/** Which recipients to retry; by default those that have failed. */
export interface Retrying extends SendOptions {
  /** Recipients of the notification, by their URIs. */
  readonly to?: string | ReadonlyArray<string> | undefined
}

/** Waiting for recipients. */
export interface Waiting {
  /** The condition that ends the wait; by default, that no attempt follows. */
  readonly until?: ((progress: NotificationProgress) => boolean) | undefined
  /** Called with the progress at first and after each change. */
  readonly onChange?: ((progress: NotificationProgress) => void) | undefined
  /** Called when the connection is lost; the wait continues with the next connection. */
  readonly onConnectionLost?: ((error: unknown) => void) | undefined
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
  problem: optionalText(document, "problem"),
  paused: optionalText(document, "paused")
})

const attemptOf = (document: JsonObject): RecipientAttempt => ({
  recipient: textOf(document, "recipient"),
  number: numberOf(document, "number"),
  ...recordedAttemptOf(document)
})

const progressOf = ({ document, headers }: DocumentResponse): NotificationProgress => ({
  href: textOf(document, "href"),
  time: textOf(document, "time"),
  status: wordOf(document, "status", statuses),
  replaced: optionalText(document, "replaced"),
  withdrawn: optionalText(document, "withdrawn"),
  recipients: listOf(document, "recipient").map(recipientOf),
  etag: headers.get("etag") ?? undefined
})

/** Reads a Notification-Status field, such as `waiting; success=3; retry=1`. */
const summaryOf = (field: string): ProgressSummary => {
  const [status = "", ...counts] = field.split(";").map((part) => part.trim())
  return {
    status: wordOf({ status }, "status", statuses),
    counts: Object.fromEntries(counts.map((count) => {
      const [name = "", number] = count.split("=")
      return [wordOf({ name }, "name", recipientStatuses), Number(number)]
    }))
  }
}

/** Whether no attempt follows. */
const isFinal = ({ recipients }: NotificationProgress): boolean =>
  recipients.every(({ status }) => status === "success" || status === "failed")

/**
 * A notification that was sent: durably queued, and relayed by the service. No attempt starts after
 * its deletion (A8).
 */
export class SentNotification extends RemoteResource {
  /** Its progress (A6). */
  async status(signal?: AbortSignal): Promise<NotificationProgress> {
    return progressOf(await this.transport.request({ method: "GET", uri: this.href, signal }))
  }

  async recipients(signal?: AbortSignal): Promise<ReadonlyArray<Recipient>> {
    return (await this.status(signal)).recipients
  }

  /** What was sent last to its recipients, and what they have answered. */
  async attempts(signal?: AbortSignal): Promise<RecipientAttempts> {
    const document = await this.transport.get(`${this.href}/attempts`, signal)
    return {
      attempts: listOf(document, "attempt").map(attemptOf),
      dropped: optionalNumber(document, "dropped") ?? 0
    }
  }

  /** Its progress in numbers, without the recipients; undefined when it no longer exists. */
  async summary(signal?: AbortSignal): Promise<ProgressSummary | undefined> {
    const request = {
      method: "HEAD",
      uri: this.href,
      acceptedStatuses: [404, 410],
      signal
    } as const
    const { headers } = await this.transport.request(request)
    const field = headers.get("notification-status")
    return field === null ? undefined : summaryOf(field)
  }

  /**
   * Its progress, at first and after each change, without end. It continues after lost
   * connections, and calls `onConnectionLost` for each.
   */
  async *changes(
    signal?: AbortSignal,
    onConnectionLost?: (error: unknown) => void
  ): AsyncGenerator<NotificationProgress, void, void> {
    let progress = await this.status(signal)
    yield progress
    for (let failures = 0;;) {
      try {
        const changed = await this.nextChange(progress, signal)
        failures = 0
        if (changed !== undefined) yield progress = changed
        // A service that responds "not modified" at once has no long poll.
        await this.transport.pause(changed === undefined ? pollIntervalMs : changePauseMs, signal)
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof Unavailable)) throw error
        failures += 1
        onConnectionLost?.(error)
        await this.transport.pause(backoffMs(failures), signal)
      }
    }
  }

  /**
   * Waits until no attempt follows, or for the condition `until`. Attempts continue for days, so
   * give a signal such as `AbortSignal.timeout` to limit the wait.
   */
  async wait(
    { onChange, onConnectionLost, signal, until = isFinal }: Waiting = {}
  ): Promise<NotificationProgress> {
    for await (const progress of this.changes(signal, onConnectionLost)) {
      onChange?.(progress)
      if (until(progress)) return progress
    }
    return unexpected("changes have no end")
  }

  /**
   * Retries the failed recipients; Conflict when none has failed. With `to` it is sent again to
   * these recipients, whatever they have got: who still knows it recognizes the repetition.
   */
  async retry({ to, ...options }: Retrying = {}): Promise<NotificationProgress> {
    const document = to === undefined ? undefined : { to: typeof to === "string" ? [to] : to }
    return progressOf(await this.transport.post(`${this.href}/retry`, document, options))
  }

  /**
   * Sends this to its recipients in its place. Mailboxes of the service show the last one only;
   * others get it with an element `replaces`. Conflict once it is withdrawn.
   */
  async replace(
    { from, ...replacement }: Replacement,
    options: SendOptions = {}
  ): Promise<NotificationProgress> {
    const document = { ...from === true ? { from: "true" } : {}, item: itemOf(replacement) }
    return progressOf(await this.transport.post(`${this.href}/replacement`, document, options))
  }

  /**
   * Withdraws it: mailboxes of the service show when, other recipients are notified. Conflict when
   * it was withdrawn before.
   */
  async withdraw(options: SendOptions = {}): Promise<NotificationProgress> {
    return progressOf(await this.transport.post(`${this.href}/withdrawal`, undefined, options))
  }

  private async nextChange(
    { etag }: NotificationProgress,
    signal: AbortSignal | undefined
  ): Promise<NotificationProgress | undefined> {
    const response = await this.transport.request({
      method: "GET",
      uri: this.href,
      headers: { "if-none-match": etag, prefer: `wait=${longPollSeconds}` },
      acceptedStatuses: [304],
      timeoutMs: responseMs + longPollSeconds * 1000,
      attempts: 1,
      signal
    })
    return response.status === 304 ? undefined : progressOf(response)
  }
}

/** One line of an outgoing mailbox. */
export interface Sent {
  readonly href: string
  readonly time: string
  readonly status: SentStatus
}

/** The origin of a URI, as the service writes it. */
const originOf = (uri: string): string => new URL(uri).origin

const sentOf = (document: JsonObject): Sent => ({
  href: textOf(document, "href"),
  time: textOf(document, "time"),
  status: wordOf(document, "status", statuses)
})

/** Which relays of an outgoing mailbox are paused, and since when (RFC 3339). */
export interface OutgoingPauses {
  /** Since when all are; undefined if they are not. */
  readonly since: string | undefined
  /** The origins to which they are paused, such as `https://receiver.example`. */
  readonly origins: ReadonlyArray<{ readonly origin: string; readonly since: string }>
}

interface ReadPauses {
  readonly pauses: OutgoingPauses
  readonly etag: string | undefined
}

const pausesOf = ({ document, headers }: DocumentResponse): ReadPauses => ({
  pauses: {
    since: optionalText(document, "since"),
    origins: listOf(document, "pause").map((pause) => ({
      origin: textOf(pause, "origin"),
      since: textOf(pause, "since")
    }))
  },
  etag: headers.get("etag") ?? undefined
})

/** What came of a retry or a replay of a span. */
interface RetriedSpan {
  readonly notifications: number
  readonly recipients: number
  /** Notifications that are not sent again to a recipient that was named. */
  readonly refused: number
}

/** The account's own outgoing mailbox. */
export class Outgoing {
  private readonly transport: HttpTransport
  private readonly account: string | undefined
  private ownUri: Promise<string> | undefined

  constructor(transport: HttpTransport, account: string | undefined) {
    this.transport = transport
    this.account = account
  }

  /** Its URI. Without an account name, the service resolves it from the token. */
  href(): Promise<string> {
    const { account } = this
    if (account !== undefined) {
      return Promise.resolve(this.transport.absolute(`/outgoing/${encodeURIComponent(account)}`))
    }
    const uri = this.ownUri ?? this.requestOwnUri()
    this.ownUri = uri
    uri.catch(() => this.ownUri = undefined)
    return uri
  }

  /** A5: once it resolves, the notification is durably queued. */
  async send(sending: Sending, options: SendOptions = {}): Promise<SentNotification> {
    const { from, to } = sending
    const document = {
      to: typeof to === "string" ? [to] : to,
      ...from === true ? { from: "true" } : {},
      item: itemOf(sending)
    }
    return this.sent(locationOf(await this.transport.post(await this.href(), document, options)))
  }

  /** A notification that was sent earlier, by its URI. */
  sent(href: string): SentNotification {
    return new SentNotification(this.transport, href)
  }

  /** A7: newest first. */
  async *list(
    { status, ...options }: ListingOptions & {
      readonly status?: SentStatus | undefined
    } = {}
  ): AsyncGenerator<Sent, void, void> {
    yield* this.transport.list(await this.href(), "notification", sentOf, options, { status })
  }

  /**
   * Retries all failed recipients of notifications since a time, and until another, RFC 3339. With
   * `to` these recipients get all that was sent to them again, also what they have; `refused` are
   * notifications that were sent again too often, or replaced since.
   */
  async retrySince(
    since: string,
    until?: string,
    { to }: { readonly to?: string | ReadonlyArray<string> } = {}
  ): Promise<RetriedSpan> {
    const document = to === undefined ? undefined : { to: typeof to === "string" ? [to] : to }
    let [notifications, recipients, refused] = [0, 0, 0]
    const first = withQuery(`${await this.href()}/retry`, { since, until })
    for (let uri: string | undefined = first; uri !== undefined;) {
      const answer: DocumentResponse = await this.transport.post(uri, document)
      notifications += numberOf(answer.document, "notifications")
      recipients += numberOf(answer.document, "recipients")
      refused += Number(optionalText(answer.document, "refused") ?? 0)
      const next = optionalText(answer.document, "next")
      uri = next === undefined ? undefined : pathOf(next)
    }
    return { notifications, recipients, refused }
  }

  /** Which of its relays are paused. */
  async pauses(): Promise<OutgoingPauses> {
    return (await this.readPauses()).pauses
  }

  /**
   * Pauses all relays, or those to an origin, until they are resumed. What is sent meanwhile is
   * accepted, and waits.
   */
  pause(origin?: string): Promise<OutgoingPauses> {
    return this.changePauses(({ origins, since }) =>
      origin === undefined
        ? { isPaused: true, origins: origins.map((one) => one.origin) }
        : {
          isPaused: since !== undefined,
          origins: [...new Set([...origins.map((one) => one.origin), originOf(origin)])]
        }
    )
  }

  /** Resumes all relays, or those to an origin: what has waited is sent. */
  resume(origin?: string): Promise<OutgoingPauses> {
    return this.changePauses(({ origins, since }) =>
      origin === undefined
        ? { isPaused: false, origins: origins.map((one) => one.origin) }
        : {
          isPaused: since !== undefined,
          origins: origins.map((one) => one.origin).filter((one) => one !== originOf(origin))
        }
    )
  }

  private async readPauses(): Promise<ReadPauses> {
    const uri = `${await this.href()}/pauses`
    return pausesOf(await this.transport.request({ method: "GET", uri }))
  }

  /** Changes the pauses that it has read, and reads them again if others have changed them. */
  private async changePauses(
    change: (
      pauses: OutgoingPauses
    ) => { readonly isPaused: boolean; readonly origins: ReadonlyArray<string> }
  ): Promise<OutgoingPauses> {
    const uri = `${await this.href()}/pauses`
    for (let attempt = 1;; attempt++) {
      const { etag, pauses } = await this.readPauses()
      const { isPaused, origins } = change(pauses)
      const status = isPaused ? "paused" : "active"
      const document = { status, pause: origins.map((origin) => ({ origin })) }
      const response = await this.transport.put(uri, document, {
        acceptedStatuses: attempt < pauseChangesMax ? [412] : [],
        ifMatch: etag
      })
      if (response.status !== 412) return pausesOf(response).pauses
    }
  }

  /** `GET /outgoing` redirects to it. A browser hides the redirect, so it must follow. */
  private async requestOwnUri(): Promise<string> {
    const request = { method: "GET", uri: "/outgoing" } as const
    const location = await this.transport.send(
      { ...request, accept: "application/json", redirect: "manual", acceptedStatuses: [0, 303] },
      ({ headers }) => headers.get("location")
    )
    if (location !== null) return this.transport.absolute(pathOf(location))
    const { document } = await this.transport.request({ ...request, redirect: "follow" })
    return this.transport.absolute(pathOf(textOf(document, "href")))
  }
}
