/** The client of a restante service. */
import { Accounts, type ClusterReport, clusterStatus, downloadArchive } from "./administration.ts"
import { Cabinet, type CabinetContents, createCabinet, listCabinets } from "./cabinets.ts"
import { type Content, getContent, publish, type Published, type Publishing,
  type ReadContentOptions, type Receipt, receiptsOf, removeResource, replaceContent, reportReceipt,
  type WriteCondition } from "./content.ts"
import { attemptsMax } from "./limits.ts"
import { type ListedMailbox, listMailboxes, Mailbox, type MailboxSettings, type OpenedMailbox,
  openMailbox } from "./mailbox.ts"
import { Outgoing, type Sending, type SendOptions, type SentNotification } from "./outgoing.ts"
import { Queries } from "./queries.ts"
import { beginSession, type ListedSession, listSessions, Session } from "./session.ts"
import { basicAuthorization, type Fetch, HttpTransport, type ListingOptions,
  type RequestContentBody, type ServiceRequest, type ServiceResponse } from "./transport/index.ts"

/** The address of the service, and the credentials. */
export interface ConnectOptions {
  /** As in `https://post.example`. */
  readonly url: string | URL
  /** The service's own base URL (`BASE_URL`), where that is not `url`. */
  readonly publicUrl?: string | URL | undefined
  readonly account?: string | undefined
  /** The account's token; without an account name, it is sent as Bearer. */
  readonly token?: string | undefined
  /** Instead of the global fetch. */
  readonly fetch?: Fetch | undefined
  /** Aborts everything in progress. */
  readonly signal?: AbortSignal | undefined
  /** Most attempts of a request when the service does not respond. */
  readonly attempts?: number | undefined
}

/** The operations of an account at a service. */
export class Client {
  /** The accounts of the service (role `admin`). */
  readonly accounts: Accounts
  /** The account's own outgoing mailbox. */
  readonly outgoing: Outgoing
  /** Quotes, customers, queries. */
  readonly queries: Queries
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport, account: string | undefined) {
    this.transport = transport
    this.accounts = new Accounts(transport)
    this.outgoing = new Outgoing(transport, account)
    this.queries = new Queries(transport)
  }

  /** A1: publishes content, and returns its URI and its secret edit URI. */
  publish(content: RequestContentBody, options: Publishing = {}): Promise<Published> {
    return publish(this.transport, content, options)
  }

  /**
   * A3: reads a message by its URI, at this service or another; or the message of a notification,
   * with the notification's password.
   */
  get(
    message: string | { readonly url: string; readonly password?: string | undefined },
    options: ReadContentOptions = {}
  ): Promise<Content> {
    if (typeof message === "string") return getContent(this.transport, message, options)
    return getContent(this.transport, message.url, { password: message.password, ...options })
  }

  /** Overwrites content by its edit URI, or as its owner. Returns the new entity tag. */
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

  /** A4: reports that a message was received or retrieved, or a problem with it. */
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

  /** A5: sends a notification to mailboxes anywhere; resolves once it is durably queued. */
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

  /** A mailbox by its name, its URI or its secret URI; read as the account, or by password. */
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

  /** The nodes of the service (role `admin`). */
  cluster(signal?: AbortSignal): Promise<ClusterReport> {
    return clusterStatus(this.transport, signal)
  }

  /** The archive of everything that the service stores (role `admin`). */
  archive(signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return downloadArchive(this.transport, signal)
  }

  /**
   * Any other request, with the client's credentials, retries and errors. A POST is retried only if
   * it has an `idempotency-key`.
   */
  request(request: ServiceRequest): Promise<ServiceResponse> {
    return this.transport.text(request)
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
 * A client of the service at `url`. Only its methods send requests. Throws TypeError for invalid
 * options.
 */
export const connect = (options: ConnectOptions): Client => {
  const { account, attempts = attemptsMax, fetch, publicUrl, signal, token } = options
  const url = baseOf("url", options.url)
  if (account !== undefined && token === undefined) {
    throw new TypeError("an account needs its token: set token")
  }
  if (account?.includes(":") === true) {
    throw new TypeError("the name of an account cannot have a colon")
  }
  if (!(attempts >= 1)) throw new TypeError("attempts must be 1 or more")
  const authorization = token === undefined
    ? undefined
    : account === undefined
    ? `Bearer ${token}`
    : basicAuthorization(account, token)
  const transport = new HttpTransport({
    url,
    publicUrl: publicUrl === undefined ? url : baseOf("publicUrl", publicUrl),
    authorization,
    // A browser allows calling fetch only as a global.
    fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
    signal,
    attempts
  })
  return new Client(transport, account)
}
