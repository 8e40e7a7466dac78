/** Mailboxes (protocol §1.2): opening, depositing, reading, watching, settings, the end. */
import { longPollSeconds, pageEntries, responseMs } from "./limits.ts"
import { itemOf, type Notification, notificationFrom, type NotificationInput, Watch,
  type Watching } from "./notifications.ts"
import { type NewRegistration, Registration, type RegistrationEntry, registrationEntryOf,
  registrationInfoOf } from "./registration.ts"
import { basicAuthorization, type CursorListingOptions, defined, HttpTransport, type JsonObject,
  linkOf, listOf, locationOf, objectOf, optionalNumber, optionalText, type PostOptions,
  RemoteResource, textOf, withQuery } from "./transport/index.ts"

/** Settings by the owner. */
export interface MailboxSettings {
  readonly title?: string | undefined
  /** Who may deposit. */
  readonly deposit?: "anyone" | "accounts" | undefined
  /** How long the mailbox stores a retrieved notification, as an ISO 8601 duration. */
  readonly retention?: string | undefined
  /** `eager`: the mailbox fetches each message and stores a copy, up to `fetchLimitBytes`. */
  readonly fetch?: "never" | "eager" | undefined
  readonly fetchLimitBytes?: number | undefined
  /** Which receipts the mailbox sends to publishers. */
  readonly receipts?: "none" | "received" | "retrieved" | undefined
  /**
   * The template of the description of webhooks, or the name of a sender such as `github`; the
   * mailbox then takes webhooks.
   */
  readonly webhook?: string | undefined
  readonly webhookLink?: string | undefined
  readonly webhookPriority?: string | undefined
  readonly webhookTags?: string | undefined
}

/** The secrets of a mailbox, which the service shows only once. */
export interface MailboxSecrets {
  /** For reading by HTTP Basic, with any user name. */
  readonly password: string
  /** The secret URI that a group can share. */
  readonly shared: string
}

/** A new mailbox. */
export interface OpenedMailbox extends MailboxSecrets {
  readonly href: string
  readonly mailbox: Mailbox
}

/** A page of a mailbox, oldest first. */
export interface MailboxPage {
  readonly href: string
  readonly title: string
  /** Continue after this page with `read({ after: cursor })`. */
  readonly cursor: string
  /** Whether a next page exists. */
  readonly more: boolean
  /** Whether notifications that followed `after` have been removed. */
  readonly discarded: boolean
  readonly etag: string | undefined
  readonly notifications: ReadonlyArray<Notification>
}

/** Options of reading a page. */
export interface ReadOptions {
  /** A cursor of an earlier page or notification, or any RFC 3339 time. */
  readonly after?: string | undefined
  /** Up to 1000. */
  readonly limit?: number | undefined
  /** Longest wait for a first notification after the cursor. */
  readonly waitSeconds?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** One of the account's own mailboxes. */
export interface ListedMailbox {
  readonly href: string
  readonly title: string
  readonly notifications: number | undefined
}

/** Later than every notification. */
const farFuture = "9999-12-31T23:59:59Z"

export const listedMailboxOf = (document: JsonObject): ListedMailbox => ({
  href: textOf(document, "href"),
  title: optionalText(document, "title") ?? "",
  notifications: optionalNumber(document, "notifications")
})

export const documentOfMailbox = (
  { fetchLimitBytes, webhookLink, webhookPriority, webhookTags, ...settings }: MailboxSettings
): JsonObject =>
  defined({
    ...settings,
    "fetch-limit": fetchLimitBytes === undefined ? undefined : String(fetchLimitBytes),
    "webhook-link": webhookLink,
    "webhook-priority": webhookPriority,
    "webhook-tags": webhookTags
  })

const settingsOf = (document: JsonObject): MailboxSettings =>
  // The service writes only the values that it accepts.
  defined({
    title: optionalText(document, "title"),
    deposit: optionalText(document, "deposit"),
    retention: optionalText(document, "retention"),
    fetch: optionalText(document, "fetch"),
    fetchLimitBytes: optionalNumber(document, "fetch-limit"),
    receipts: optionalText(document, "receipts"),
    webhook: optionalText(document, "webhook"),
    webhookLink: optionalText(document, "webhook-link"),
    webhookPriority: optionalText(document, "webhook-priority"),
    webhookTags: optionalText(document, "webhook-tags")
  }) as MailboxSettings

export const secretsOf = (document: JsonObject): MailboxSecrets => ({
  password: textOf(document, "password"),
  shared: textOf(objectOf(document, "shared"), "href")
})

/** A mailbox, by its URI. Its owner deletes it with its notifications (A10). */
export class Mailbox extends RemoteResource {
  /** Sends the password of the mailbox, if there is one; else the account's credentials. */
  private readonly reader: HttpTransport

  constructor(transport: HttpTransport, href: string, password?: string) {
    super(transport, transport.absolute(href))
    this.reader = password === undefined
      ? transport
      : new HttpTransport(transport.endpoint, basicAuthorization("reader", password))
  }

  /** A2: deposits a notification and returns its URI. */
  async deposit(notification: NotificationInput, options: PostOptions = {}): Promise<string> {
    const document = { item: itemOf(notification) }
    const location = locationOf(await this.transport.post(this.href, document, options))
    return this.transport.resolve(location, this.href)
  }

  /** A11: one page. Throws UnknownCursor if `after` is a cursor that is not of this mailbox. */
  async read({ after, limit, signal, waitSeconds }: ReadOptions = {}): Promise<MailboxPage> {
    const { document, headers } = await this.reader.request({
      method: "GET",
      uri: withQuery(this.href, { since: after, limit }),
      headers: waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` },
      timeoutMs: responseMs + (waitSeconds ?? 0) * 1000,
      signal
    })
    return {
      href: textOf(document, "href"),
      title: textOf(document, "title"),
      cursor: textOf(document, "time"),
      more: linkOf(headers.get("link"), "next") !== undefined,
      discarded: optionalText(document, "discarded") === "true",
      etag: headers.get("etag") ?? undefined,
      notifications: listOf(document, "notification")
        .map(notificationFrom(this.reader, this.href))
    }
  }

  /** All its notifications, page by page. Throws UnknownCursor as `read` does. */
  notifications(
    { pageSize = pageEntries, ...options }: CursorListingOptions = {}
  ): AsyncGenerator<Notification, void, void> {
    const listing = { ...options, pageSize }
    const decode = notificationFrom(this.reader, this.href)
    return this.reader.list(this.href, "notification", decode, listing)
  }

  /** Its notifications, and new ones as they arrive; see Watch. */
  watch(options: Watching = {}): Watch {
    const { href, reader: transport } = this
    const reading = { after: farFuture, limit: 1, signal: options.signal }
    const now = async () => (await this.read(reading)).cursor
    return new Watch({ transport, href, now }, options)
  }

  /** Waits for the next page after a cursor; the page is empty after a timeout. */
  next(after: string, signal?: AbortSignal): Promise<MailboxPage> {
    return this.read({ after, waitSeconds: longPollSeconds, signal })
  }

  /** One notification. Throws UnexpectedAnswer for a URI that is not of this mailbox. */
  async get(href: string, signal?: AbortSignal): Promise<Notification> {
    const uri = this.reader.below(this.href, "notifications", href)
    return notificationFrom(this.reader, this.href)(await this.reader.get(uri, signal))
  }

  /**
   * Removes a notification. A notification that is already gone is not a failure. Throws
   * UnexpectedAnswer for a notification whose URI is not of this mailbox.
   */
  async remove(notification: string | Notification): Promise<void> {
    const href = typeof notification === "string" ? notification : notification.href
    await this.reader.remove(this.reader.below(this.href, "notifications", href))
  }

  /** Registers a callback for changes (A12). The service shows the secret only once. */
  async register(
    { callback, ...options }: PostOptions & { readonly callback: string }
  ): Promise<NewRegistration> {
    const uri = `${this.href}/registrations`
    const { document } = await this.reader.post(uri, { callback }, options)
    const state = registrationInfoOf(document)
    const secret = textOf(document, "secret")
    const href = this.reader.follow(state.href, this.href)
    return { registration: this.registration(href), secret, state }
  }

  /** The states of the registrations of all readers. */
  async registrations(): Promise<ReadonlyArray<RegistrationEntry>> {
    const entries: Array<RegistrationEntry> = []
    const uri = `${this.href}/registrations`
    for await (const entry of this.reader.list(uri, "registration", registrationEntryOf)) {
      entries.push(entry)
    }
    return entries
  }

  /** A registration by its URI. Throws UnexpectedAnswer for a URI that is not of this mailbox. */
  registration(href: string): Registration {
    return new Registration(this.reader, this.reader.below(this.href, "registrations", href))
  }

  /** The settings by its owner. */
  async settings(): Promise<MailboxSettings> {
    const uri = withQuery(this.href, { since: farFuture, limit: 1 })
    return settingsOf(await this.transport.get(uri))
  }

  /** Replaces the settings (owner). An omitted setting has its default. */
  async configure(settings: MailboxSettings): Promise<void> {
    await this.transport.put(this.href, documentOfMailbox(settings))
  }

  /** Changes both secrets (owner). */
  async renewSecrets(): Promise<MailboxSecrets> {
    return secretsOf((await this.transport.post(`${this.href}/password`)).document)
  }
}
