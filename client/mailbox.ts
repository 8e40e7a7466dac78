/** Mailboxes (protocol §1.2): opening, depositing, reading, watching, settings, the end. */
import { removeResource } from "./content.ts"
import { answerMs, longPollSeconds, pageEntries } from "./limits.ts"
import { itemOf, type Notification, type NotificationInput, notificationOf, Watch,
  type Watching } from "./notifications.ts"
import { makeRegistration, type NewRegistration, Registration,
  registrationsOf } from "./registration.ts"
import { basic, defined, type HttpTransport, type JsonObject, linkOf, type ListingOptions, listOf,
  newKey, objectOf, optionalNumber, optionalText, pagesOf, textOf, unexpected,
  withQuery } from "./transport/index.ts"

/** What an owner may set. */
export interface MailboxSettings {
  readonly title?: string | undefined
  /** Who may deposit. */
  readonly deposit?: "anyone" | "accounts" | undefined
  /** How long notifications are kept after they were read, as an ISO 8601 duration. */
  readonly retention?: string | undefined
  /** Whether the mailbox fetches messages at once and keeps copies, up to `fetchLimitBytes`. */
  readonly fetch?: "never" | "eager" | undefined
  readonly fetchLimitBytes?: number | undefined
  /** Which receipts the mailbox sends to publishers. */
  readonly receipts?: "none" | "received" | "retrieved" | undefined
}

/** The secrets of a mailbox, which are told once. */
export interface MailboxSecrets {
  /** Reads by HTTP Basic, with any user name. */
  readonly password: string
  /** The unguessable URI that a group can share. */
  readonly shared: string
}

/** A mailbox that has just been opened. */
export interface OpenedMailbox extends MailboxSecrets {
  readonly href: string
  readonly mailbox: Mailbox
}

/** A page of a mailbox, oldest first. */
export interface MailboxPage {
  readonly href: string
  readonly title: string
  /** Go on after this page with `read({ after: cursor })`. */
  readonly cursor: string
  /** Whether there is more already. */
  readonly more: boolean
  readonly etag: string | undefined
  readonly notifications: ReadonlyArray<Notification>
}

/** What to read. */
export interface ReadOptions {
  /** A cursor of an earlier page or notification, or any RFC 3339 time. */
  readonly after?: string | undefined
  /** Up to 1000. */
  readonly limit?: number | undefined
  /** Waits so long at the most while there is nothing after the cursor. */
  readonly waitSeconds?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** One of the caller's own mailboxes. */
export interface ListedMailbox {
  readonly href: string
  readonly title: string
  readonly notifications: number | undefined
}

/** Later than every notification. */
const farFuture = "9999-12-31T23:59:59Z"

const documentOf = ({ fetchLimitBytes, ...settings }: MailboxSettings): JsonObject => ({
  ...defined(settings),
  ...fetchLimitBytes === undefined ? {} : { "fetch-limit": String(fetchLimitBytes) }
})

const settingsOf = (document: JsonObject): MailboxSettings =>
  // What the service writes is what it takes.
  defined({
    title: optionalText(document, "title"),
    deposit: optionalText(document, "deposit"),
    retention: optionalText(document, "retention"),
    fetch: optionalText(document, "fetch"),
    fetchLimitBytes: optionalNumber(document, "fetch-limit"),
    receipts: optionalText(document, "receipts")
  }) as MailboxSettings

const secretsOf = (document: JsonObject): MailboxSecrets => ({
  password: textOf(document, "password"),
  shared: textOf(objectOf(document, "shared"), "href")
})

/** A mailbox, by its URI; nothing is asked before one of its methods is called. */
export class Mailbox {
  readonly href: string
  private readonly transport: HttpTransport
  private readonly authorization: string | undefined

  constructor(transport: HttpTransport, href: string, password?: string) {
    this.transport = transport
    this.href = transport.absolute(href)
    this.authorization = password === undefined ? undefined : basic("reader", password)
  }

  /** A2: deposits a notification and gives its URI. */
  async deposit(
    letter: NotificationInput,
    options: {
      readonly idempotencyKey?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<string> {
    const { headers } = await this.transport.text({
      method: "POST",
      uri: this.href,
      headers: {
        "content-type": "application/json",
        "idempotency-key": options.idempotencyKey ?? newKey()
      },
      body: JSON.stringify({ item: itemOf(letter) }),
      signal: options.signal
    })
    return headers.get("location") ?? unexpected("no Location")
  }

  /** A11: one page. */
  async read({ after, limit, signal, waitSeconds }: ReadOptions = {}): Promise<MailboxPage> {
    const { document, headers } = await this.transport.json({
      method: "GET",
      uri: withQuery(this.href, { since: after, limit }),
      headers: waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` },
      withinMs: answerMs + (waitSeconds ?? 0) * 1000,
      authorization: this.authorization,
      signal
    })
    return {
      href: textOf(document, "href"),
      title: textOf(document, "title"),
      cursor: textOf(document, "time"),
      more: linkOf(headers.get("link"), "next") !== undefined,
      etag: headers.get("etag") ?? undefined,
      notifications: listOf(document, "notification").map(notificationOf)
    }
  }

  /** All that is there, page by page. */
  async *notifications(
    { after, pageSize, signal }: ListingOptions & { readonly after?: string | undefined } = {}
  ): AsyncGenerator<Notification, void, void> {
    const first = withQuery(this.href, { since: after, limit: pageSize ?? pageEntries })
    const { authorization, transport } = this
    for await (const page of pagesOf(transport, first, { signal, authorization })) {
      yield* listOf(page, "notification").map(notificationOf)
    }
  }

  /** All that is there and all that comes; see Watch. */
  watch(options: Watching = {}): Watch {
    const { authorization, href, transport } = this
    const reading = { after: farFuture, limit: 1, signal: options.signal }
    const now = async () => (await this.read(reading)).cursor
    return new Watch({ transport, href, authorization, now }, options)
  }

  /** Waits for the next page after a cursor: empty when nothing came in time. */
  next(after: string, signal?: AbortSignal): Promise<MailboxPage> {
    return this.read({ after, waitSeconds: longPollSeconds, signal })
  }

  /** One notification, by its URI. */
  async get(href: string, signal?: AbortSignal): Promise<Notification> {
    const { authorization } = this
    const asked = { method: "GET", uri: href, authorization, signal } as const
    return notificationOf((await this.transport.json(asked)).document)
  }

  /** Removes a notification; one that is gone already is no failure. */
  remove(notification: string | Notification): Promise<void> {
    const href = typeof notification === "string" ? notification : notification.href
    return removeResource(this.transport, href, {}, this.authorization)
  }

  /** Has changes pushed to a callback (A12). The secret is told this once. */
  register(
    registration: { readonly callback: string; readonly idempotencyKey?: string | undefined }
  ): Promise<NewRegistration> {
    return makeRegistration(this.transport, this.href, this.authorization, registration)
  }

  /** The registrations of all readers. */
  registrations(): Promise<ReadonlyArray<Registration>> {
    return registrationsOf(this.transport, this.href, this.authorization)
  }

  /** A registration by its URI. */
  registration(href: string): Registration {
    return new Registration(this.transport, href, this.authorization)
  }

  /** What its owner has set. */
  async settings(): Promise<MailboxSettings> {
    const uri = withQuery(this.href, { since: farFuture, limit: 1 })
    return settingsOf((await this.transport.json({ method: "GET", uri })).document)
  }

  /** Replaces the settings (owner): what is left out has its default again. */
  async configure(settings: MailboxSettings): Promise<void> {
    await this.transport.text({
      method: "PUT",
      uri: this.href,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(documentOf(settings))
    })
  }

  /** Changes both secrets (owner). */
  async renewSecrets(): Promise<MailboxSecrets> {
    const { document } = await this.transport.json({
      method: "POST",
      uri: `${this.href}/password`,
      headers: { "idempotency-key": newKey() }
    })
    return secretsOf(document)
  }

  /** A10: removes the mailbox with all in it (owner). */
  delete(): Promise<void> {
    return removeResource(this.transport, this.href)
  }
}

/** A9: opens a mailbox; Conflict when the name is taken. */
export const openMailbox = async (
  transport: HttpTransport,
  { idempotencyKey, name, ...settings }: MailboxSettings & {
    readonly name?: string | undefined
    readonly idempotencyKey?: string | undefined
  }
): Promise<OpenedMailbox> => {
  const { document } = await transport.json({
    method: "POST",
    uri: "/mailboxes",
    headers: {
      "content-type": "application/json",
      "idempotency-key": idempotencyKey ?? newKey()
    },
    body: JSON.stringify({ ...defined({ name }), ...documentOf(settings) })
  })
  const href = textOf(document, "href")
  return { href, mailbox: new Mailbox(transport, href), ...secretsOf(document) }
}

/** The caller's own mailboxes. */
export async function* listMailboxes(
  transport: HttpTransport,
  { pageSize: limit, signal }: ListingOptions = {}
): AsyncGenerator<ListedMailbox, void, void> {
  for await (const page of pagesOf(transport, withQuery("/mailboxes", { limit }), { signal })) {
    for (const one of listOf(page, "mailbox")) {
      yield {
        href: textOf(one, "href"),
        title: optionalText(one, "title") ?? "",
        notifications: optionalNumber(one, "notifications")
      }
    }
  }
}
