/** The client of a restante service, and the content resources (protocol §1.1). */
import { Accounts, type ClusterReport, clusterReportOf } from "./administration.ts"
import { AuditLog } from "./audit.ts"
import { Cabinet, type CabinetContents, documentOfCabinet } from "./cabinets.ts"
import { attemptsMax } from "./limits.ts"
import { documentOfMailbox, type ListedMailbox, listedMailboxOf, Mailbox, type MailboxSettings,
  type OpenedMailbox, secretsOf } from "./mailbox.ts"
import { Outgoing, type Sending, type SendOptions, type SentNotification } from "./outgoing.ts"
import { Queries } from "./queries.ts"
import { type ListedSession, listedSessionOf, Session } from "./session.ts"
import { basicAuthorization, createdOf, defined, type Fetch, HttpTransport, type JsonObject,
  type ListingOptions, locationOf, newIdempotencyKey, optionalText, pathOf, type PostOptions,
  type RequestContentBody, type ServiceRequest, type ServiceResponse, textOf, unexpected,
  type WriteCondition } from "./transport/index.ts"

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

/** How to publish content. */
export interface Publishing extends PostOptions {
  /** A media type; `text/plain; charset=utf-8` for a string, a Blob's own, else octets. */
  readonly contentType?: string | undefined
  /** As in `attachment; filename="plan.pdf"`. */
  readonly disposition?: string | undefined
  /** A password of 16 or more visible characters, or `generate` for one by the service. */
  readonly password?: string | undefined
}

/** Published content. The URI `edit` allows overwriting and removing it. */
export interface Published {
  readonly href: string
  /** The secret edit URI, which the service shows only once. */
  readonly edit: string
  /** The message password, if it has one. */
  readonly password: string | undefined
}

/** Content with its response. */
export interface Content {
  readonly href: string
  readonly type: string
  readonly etag: string | undefined
  readonly lengthBytes: number | undefined
  /** Read it once, by `text()`, `arrayBuffer()`, `blob()` or `body`. */
  readonly response: Response
}

/** How to read content. */
export interface ReadContentOptions {
  readonly password?: string | undefined
  /** First and last byte, both inclusive. */
  readonly range?: { readonly from: number; readonly to?: number } | undefined
  readonly signal?: AbortSignal | undefined
}

/** A recipient's report about a message (A4). */
export interface Receipt {
  readonly href: string
  readonly received: string
  readonly status: string
  readonly mailbox: string | undefined
  readonly description: string | undefined
}

const receiptOf = (document: JsonObject): Receipt => ({
  href: textOf(document, "href"),
  received: textOf(document, "received"),
  status: textOf(document, "status"),
  mailbox: optionalText(document, "mailbox"),
  description: optionalText(document, "description")
})

const typeOf = (body: RequestContentBody): string => {
  if (typeof body === "string") return "text/plain; charset=utf-8"
  return body instanceof Blob && body.type !== "" ? body.type : "application/octet-stream"
}

/** The operations of an account at a service. */
export class Client {
  /** The accounts of the service (role `admin`). */
  readonly accounts: Accounts
  /** The audit log of the service (role `admin`). */
  readonly audit: AuditLog
  /** The account's own outgoing mailbox. */
  readonly outgoing: Outgoing
  /** Quotes, customers, queries. */
  readonly queries: Queries
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport, account: string | undefined) {
    this.transport = transport
    this.accounts = new Accounts(transport)
    this.audit = new AuditLog(transport)
    this.outgoing = new Outgoing(transport, account)
    this.queries = new Queries(transport)
  }

  /** A1: publishes content, and returns its URI and its secret edit URI. */
  async publish(body: RequestContentBody, options: Publishing = {}): Promise<Published> {
    const { idempotencyKey = newIdempotencyKey(), password } = options
    const response = await this.sendContent("POST", "/content", body, options, {
      "message-password": password,
      "idempotency-key": idempotencyKey
    })
    return {
      ...createdOf(response),
      password: response.headers.get("message-password") ??
        (password === "generate" ? undefined : password)
    }
  }

  /**
   * A3: reads a message by its URI, at this service or another; or the message of a notification,
   * with the notification's password. Only content of this service receives the account's
   * credentials: a stranger chooses the URI of a message, which may be any of this service.
   */
  async get(
    message: string | { readonly url: string; readonly password?: string | undefined },
    options: ReadContentOptions = {}
  ): Promise<Content> {
    const source = typeof message === "string" ? { url: message } : message
    const { password, range, signal, url: href } = { ...source, ...options }
    const request = {
      method: "GET",
      uri: href,
      // Content has any type; a refusal is JSON.
      accept: "application/problem+json, */*;q=0.9",
      headers: {
        "message-password": password,
        range: range === undefined ? undefined : `bytes=${range.from}-${range.to ?? ""}`
      },
      redirect: password === undefined ? "follow" : "error",
      authorization: this.transport.authorizationForMessage(href),
      signal
    } as const
    return this.transport.send(request, (response) => {
      const { headers } = response
      const length = headers.get("content-length")
      return {
        href,
        type: headers.get("content-type") ?? "application/octet-stream",
        etag: headers.get("etag") ?? undefined,
        lengthBytes: length === null ? undefined : Number(length),
        response
      }
    })
  }

  /** Overwrites content by its edit URI, or as its owner. Returns the new entity tag. */
  async replace(
    edit: string,
    body: RequestContentBody,
    options: Publishing & WriteCondition = {}
  ): Promise<string | undefined> {
    const conditions = { "if-match": options.ifMatch }
    const { headers } = await this.sendContent("PUT", edit, body, options, conditions)
    return headers.get("etag") ?? undefined
  }

  /** Removes content, by its edit URI or as its owner. */
  remove(edit: string, options: WriteCondition = {}): Promise<void> {
    return this.transport.remove(edit, options)
  }

  /** The receipts of a message, of all pages, by its edit URI. */
  async receipts(edit: string, signal?: AbortSignal): Promise<ReadonlyArray<Receipt>> {
    const receipts: Array<Receipt> = []
    const pages = this.transport.list(`${edit}/receipts`, "receipt", receiptOf, { signal })
    for await (const receipt of pages) receipts.push(receipt)
    return receipts
  }

  /**
   * A4: reports that a message was received or retrieved, or a problem with it. Returns the URI of
   * the receipt.
   */
  async report(
    href: string,
    { password, ...receipt }: {
      readonly status: "received" | "retrieved" | "problem"
      readonly mailbox?: string | undefined
      readonly description?: string | undefined
      readonly password?: string | undefined
    }
  ): Promise<string | undefined> {
    const { headers } = await this.transport.post(href, receipt, {
      headers: { "message-password": password },
      authorization: this.transport.authorizationForMessage(href)
    })
    return headers.get("location") ?? undefined
  }

  /** A5: sends a notification to mailboxes anywhere; resolves once it is durably queued. */
  send(sending: Sending, options: SendOptions = {}): Promise<SentNotification> {
    return this.outgoing.send(sending, options)
  }

  /** A9: opens a mailbox of the account; Conflict when the name is taken. */
  async openMailbox(
    { idempotencyKey, name, ...settings }: MailboxSettings & {
      readonly name?: string | undefined
      readonly idempotencyKey?: string | undefined
    } = {}
  ): Promise<OpenedMailbox> {
    const requested = { ...defined({ name }), ...documentOfMailbox(settings) }
    const { document } = await this.transport.post("/mailboxes", requested, { idempotencyKey })
    const href = textOf(document, "href")
    return { href, mailbox: new Mailbox(this.transport, href), ...secretsOf(document) }
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
    return this.transport.list("/mailboxes", "mailbox", listedMailboxOf, options)
  }

  async createCabinet(contents: CabinetContents): Promise<Cabinet> {
    const { document } = await this.transport.post("/cabinets", documentOfCabinet(contents))
    return this.cabinet(textOf(document, "href"))
  }

  cabinet(href: string): Cabinet {
    return new Cabinet(this.transport, href)
  }

  /** The account's own cabinets, newest first. */
  cabinets(options: ListingOptions = {}): AsyncGenerator<Cabinet, void, void> {
    const decode = (document: JsonObject) => this.cabinet(textOf(document, "href"))
    return this.transport.list("/cabinets", "cabinet", decode, options)
  }

  /** B1, B2: begins a session; its first question follows. */
  async beginSession(signal?: AbortSignal): Promise<Session> {
    const entry = await this.transport.get("/cross_bridge", signal)
    const uri = pathOf(textOf(entry, "uri"))
    return this.session(
      locationOf(await this.transport.post(uri, { continue: "true" }, { signal }))
    )
  }

  /** A session by its URI. */
  session(href: string): Session {
    return new Session(this.transport, href)
  }

  /** The account's sessions, newest first. */
  sessions(options: ListingOptions = {}): AsyncGenerator<ListedSession, void, void> {
    return this.transport.list("/sessions", "session", listedSessionOf, options)
  }

  /** The nodes of the service, as the node that responds sees them (role `admin`). */
  async cluster(signal?: AbortSignal): Promise<ClusterReport> {
    return clusterReportOf(await this.transport.get("/cluster", signal))
  }

  /** The archive of everything that the service stores (role `admin`; docs/backup.md). */
  archive(signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.transport.send(
      { method: "GET", uri: "/archive", accept: "application/json", timeoutMs: null, signal },
      ({ body }) => body ?? unexpected("it has no body")
    )
  }

  /**
   * Any other request, with the client's credentials, retries and errors. A POST is retried only if
   * it has an `idempotency-key`.
   */
  request(request: ServiceRequest): Promise<ServiceResponse> {
    return this.transport.request(request)
  }

  private sendContent(
    method: "POST" | "PUT",
    uri: string,
    body: RequestContentBody,
    { contentType = typeOf(body), disposition, signal }: Publishing,
    extraHeaders: Readonly<Record<string, string | undefined>>
  ): Promise<ServiceResponse> {
    const contentHeaders = { "content-type": contentType, "content-disposition": disposition }
    const headers = { ...contentHeaders, ...extraHeaders }
    return this.transport.request({ method, uri, headers, body, timeoutMs: null, signal })
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
