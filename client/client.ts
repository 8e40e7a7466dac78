/** A restante service, as a program sees it. */
import { Cabinet, type CabinetContents, createCabinet, listCabinets } from "./cabinets.ts"
import { type Content, getContent, publish, type Published, type Publishing,
  type ReadContentOptions, type Receipt, receiptsOf, removeResource, replaceContent, reportReceipt,
  type WriteCondition } from "./content.ts"
import { type ListedMailbox, listMailboxes, Mailbox, type MailboxSettings, type OpenedMailbox,
  openMailbox } from "./mailbox.ts"
import { Outgoing, type Sending, type SendOptions, type SentNotification } from "./outgoing.ts"
import { Queries } from "./queries.ts"
import { beginSession, type ListedSession, listSessions, Session } from "./session.ts"
import { basic, defaultAttempts, type Fetch, HttpTransport, type ListingOptions,
  type RequestContentBody } from "./transport/index.ts"

/** Where the service is, and whom to be there. */
export interface ConnectOptions {
  /** As in `https://post.example`. */
  readonly url: string | URL
  /** What the URIs that it gives out begin with, where that is not `url`. */
  readonly publicUrl?: string | URL | undefined
  readonly account?: string | undefined
  /** The account's token; without an account it is sent as Bearer. */
  readonly token?: string | undefined
  /** Instead of the global fetch. */
  readonly fetch?: Fetch | undefined
  /** Ends everything that goes on. */
  readonly signal?: AbortSignal | undefined
  /** Times that a request is made, at the most, when the service does not answer. */
  readonly attempts?: number | undefined
}

/** The service, and what an account can do there. */
export class Client {
  /** Its own outgoing mailbox. */
  readonly outgoing: Outgoing
  /** Quotes, customers, queries. */
  readonly queries: Queries
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport, account: string | undefined) {
    this.transport = transport
    this.outgoing = new Outgoing(transport, account)
    this.queries = new Queries(transport)
  }

  /** A1: publishes content, and gives its URI and the secret one by which it is edited. */
  publish(content: RequestContentBody, options: Publishing = {}): Promise<Published> {
    return publish(this.transport, content, options)
  }

  /**
   * A3: reads a message by its URI, here or at another service; or the message that a notification
   * is about, with the password in it.
   */
  get(
    message: string | { readonly url: string; readonly password?: string | undefined },
    options: ReadContentOptions = {}
  ): Promise<Content> {
    if (typeof message === "string") return getContent(this.transport, message, options)
    return getContent(this.transport, message.url, { password: message.password, ...options })
  }

  /** Overwrites content by its edit URI, or as its owner by its own; gives the new entity tag. */
  replace(
    edit: string,
    content: RequestContentBody,
    options: Publishing & WriteCondition = {}
  ): Promise<string | undefined> {
    return replaceContent(this.transport, edit, content, options)
  }

  /** Removes content, by its edit URI or as its owner. */
  remove(edit: string, options: WriteCondition = {}): Promise<void> {
    return removeResource(this.transport, edit, options)
  }

  /** The receipts of a message, by its edit URI. */
  receipts(edit: string, signal?: AbortSignal): Promise<ReadonlyArray<Receipt>> {
    return receiptsOf(this.transport, edit, signal)
  }

  /** A4: reports that a message was received or retrieved, or what is wrong with it. */
  report(
    href: string,
    receipt: {
      readonly status: "received" | "retrieved" | "problem"
      readonly mailbox?: string | undefined
      readonly description?: string | undefined
      readonly password?: string | undefined
    }
  ): Promise<string | undefined> {
    return reportReceipt(this.transport, href, receipt)
  }

  /** A5: has a notification relayed to mailboxes anywhere; resolves once it is durably queued. */
  send(sending: Sending, options: SendOptions = {}): Promise<SentNotification> {
    return this.outgoing.send(sending, options)
  }

  /** A9: opens a mailbox of the account. */
  openMailbox(
    options: MailboxSettings & {
      readonly name?: string | undefined
      readonly idempotencyKey?: string | undefined
    } = {}
  ): Promise<OpenedMailbox> {
    return openMailbox(this.transport, options)
  }

  /** A mailbox by its name or URI, the secret one included; read as the account, or by password. */
  mailbox(
    nameOrUri: string,
    { password }: { readonly password?: string | undefined } = {}
  ): Mailbox {
    const isUri = /[/:]/.test(nameOrUri)
    const href = isUri ? nameOrUri : `/mailboxes/${encodeURIComponent(nameOrUri)}`
    return new Mailbox(this.transport, href, password)
  }

  /** The account's mailboxes. */
  mailboxes(options: ListingOptions = {}): AsyncGenerator<ListedMailbox, void, void> {
    return listMailboxes(this.transport, options)
  }

  createCabinet(contents: CabinetContents): Promise<Cabinet> {
    return createCabinet(this.transport, contents)
  }

  cabinet(href: string): Cabinet {
    return new Cabinet(this.transport, href)
  }

  cabinets(options: ListingOptions = {}): AsyncGenerator<Cabinet, void, void> {
    return listCabinets(this.transport, options)
  }

  /** B1, B2: begins a session. */
  beginSession(signal?: AbortSignal): Promise<Session> {
    return beginSession(this.transport, signal)
  }

  /** A session by its URI. */
  session(href: string): Session {
    return new Session(this.transport, href)
  }

  sessions(options: ListingOptions = {}): AsyncGenerator<ListedSession, void, void> {
    return listSessions(this.transport, options)
  }
}

/** A base URL as text, without a slash at its end. */
const baseOf = (name: string, url: string | URL): string => {
  const parsed = new URL(url)
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new TypeError(`${name} must be an http or https URL`)
  }
  if (parsed.username !== "" || parsed.password !== "" || parsed.search !== "") {
    throw new TypeError(`${name} must have neither credentials nor a query`)
  }
  return (parsed.origin + parsed.pathname).replace(/\/+$/, "")
}

/**
 * A client of the service at `url`. Nothing is asked before one of its methods is called. Throws
 * TypeError for options that cannot be meant.
 */
export const connect = (options: ConnectOptions): Client => {
  const { account, attempts = defaultAttempts, fetch, publicUrl, signal, token } = options
  const url = baseOf("url", options.url)
  if (account !== undefined && token === undefined) throw new TypeError("an account has a token")
  if (account?.includes(":") === true) throw new TypeError("an account's name has no colon")
  if (!(attempts >= 1)) throw new TypeError("attempts must be 1 or more")
  const authorization = token === undefined
    ? undefined
    : account === undefined
    ? `Bearer ${token}`
    : basic(account, token)
  const transport = new HttpTransport({
    url,
    publicUrl: publicUrl === undefined ? url : baseOf("publicUrl", publicUrl),
    authorization,
    // Browsers' fetch is only callable as a global.
    fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
    signal,
    attempts
  })
  return new Client(transport, account)
}
