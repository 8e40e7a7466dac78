/** For operators (role `admin`): accounts and tokens, and the state of the cluster. */
import { defined, type HttpTransport, type JsonObject, type ListingOptions, listOf, numberOf,
  optionalNumber, optionalObject, optionalText, textOf, unexpected } from "./transport/index.ts"

/** A role of an account. */
export type AccountRole = "admin" | "quotes" | "customers"

/** One account of the list of accounts. */
export interface ListedAccount {
  readonly name: string
  readonly roles: ReadonlyArray<string>
}

/** A token of an account, without its text. */
export interface ListedToken {
  readonly id: string
  /** RFC 3339. */
  readonly created: string
  readonly name: string | undefined
  /** RFC 3339; undefined when it does not expire. */
  readonly expires: string | undefined
  /** Its scopes, separated by spaces; undefined when it has all rights of its account. */
  readonly scope: string | undefined
  /** When it was last used, RFC 3339, up to an hour old; undefined when it never was. */
  readonly used: string | undefined
}

/** A new token. */
export interface TokenOptions {
  /** The purpose of the token. */
  readonly name?: string | undefined
  /**
   * A time (RFC 3339), a duration (ISO 8601) or seconds; by default, and at the latest, when the
   * token of the request expires, or never.
   */
  readonly expires?: string | undefined
  /**
   * What the token is for: words of `admin`, `send`, `read`, `deposit` and one `mailbox:NAME`,
   * separated by spaces; by default it has all rights of its account.
   */
  readonly scope?: string | undefined
}

/** A new account. */
export interface NewAccountOptions {
  /** Whether a mailbox is opened for its failure reports; true by default. */
  readonly reports?: boolean | undefined
}

export interface NewAccount {
  /** Its first token, which the service shows only once. */
  readonly token: string
  /** The name of the mailbox that is opened for its failure reports. */
  readonly reportsMailbox: string | undefined
}

/** What becomes of what a removed account owned. */
export interface AccountRemoval {
  readonly owned?: "delete" | undefined
}

const listedAccountOf = (document: JsonObject): ListedAccount => {
  const { role = [] } = document
  const roles = (Array.isArray(role) ? role : [role]).map(String)
  return { name: textOf(document, "name"), roles }
}

const accountPath = (name: string): string => `/accounts/${encodeURIComponent(name)}`

/** The accounts of a service and their tokens. */
export class Accounts {
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport) {
    this.transport = transport
  }

  /** Creates an account and returns its token, which the service shows only once. */
  async create(
    name: string,
    roles: ReadonlyArray<AccountRole> = [],
    options: NewAccountOptions = {}
  ): Promise<string> {
    return (await this.open(name, roles, options)).token
  }

  /** As `create`; also returns the name of the mailbox that is opened for its failure reports. */
  async open(
    name: string,
    roles: ReadonlyArray<AccountRole> = [],
    { reports = true }: NewAccountOptions = {}
  ): Promise<NewAccount> {
    const { document } = await this.transport.post("/accounts", {
      name,
      role: roles,
      ...reports ? {} : { "failure-reports": "none" }
    })
    const secrets = listOf(document, "token").map((one) => optionalText(one, "text"))
    const token = secrets.find((secret) => secret !== undefined) ?? unexpected("there is no token")
    return { token, reportsMailbox: optionalText(document, "failure-reports") }
  }

  /** All accounts, by name. */
  list(options: ListingOptions = {}): AsyncGenerator<ListedAccount, void, void> {
    return this.transport.list("/accounts", "account", listedAccountOf, options)
  }

  /**
   * Removes an account. One that owns something is refused (409) unless `owned` says that all of
   * it is deleted, which the service then does in the background. What a request under way has
   * created beside a removal without `owned` is kept; another removal says so (409).
   */
  remove(name: string, { owned }: AccountRemoval = {}): Promise<void> {
    return this.transport.remove(accountPath(name) + (owned === undefined ? "" : `?owned=${owned}`))
  }

  /** Everything that an account owns, as lines of JSON; the last one has the kind `end`. */
  export(name: string, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const uri = `${accountPath(name)}/export`
    return this.transport.send(
      { method: "GET", uri, accept: "application/json", timeoutMs: null, signal },
      ({ body }) => body ?? unexpected("it has no body")
    )
  }

  /** The tokens of an account, oldest first. */
  async tokens(name: string): Promise<ReadonlyArray<ListedToken>> {
    const document = await this.transport.get(`${accountPath(name)}/tokens`)
    return listOf(document, "token").map((token) => ({
      id: textOf(token, "id"),
      created: textOf(token, "created"),
      name: optionalText(token, "name"),
      expires: optionalText(token, "expires"),
      scope: optionalText(token, "scope"),
      used: optionalText(token, "used")
    }))
  }

  /** Creates another token of an account, which the service shows only once. */
  async createToken(name: string, options: TokenOptions = {}): Promise<string> {
    const uri = `${accountPath(name)}/token`
    const { document } = await this.transport.post(uri, defined({ ...options }))
    return textOf(document, "text")
  }

  /** Chooses the mailbox that receives the failure reports of an account; without a name, none. */
  async chooseReportsMailbox(name: string, mailbox?: string): Promise<void> {
    const document = mailbox === undefined ? {} : { "failure-reports": mailbox }
    await this.transport.put(accountPath(name), document)
  }

  /** Revokes one token, or all tokens of an account. */
  revoke(name: string, tokens: "all" | { readonly id: string }): Promise<void> {
    const uri = `${accountPath(name)}/tokens`
    return this.transport.remove(
      tokens === "all" ? uri : `${uri}/${encodeURIComponent(tokens.id)}`
    )
  }
}

/** Counts of the actors of one kind at a node. */
export interface KindStatus {
  readonly name: string
  readonly active: number
  readonly queued: number
  readonly decisions: number
  readonly quarantined: number
}

/** One node of a cluster. Its counts are undefined when it does not respond. */
export interface NodeStatus {
  readonly name: string
  /** `silent`: it does not respond to the other nodes. */
  readonly state: "up" | "leaving" | "silent"
  readonly version: string | undefined
  readonly uptimeSeconds: number | undefined
  readonly memoryBytes: number | undefined
  /** Shards that it owns. */
  readonly shards: number
  readonly kinds: ReadonlyArray<KindStatus>
  readonly commits: number | undefined
  readonly commitP99Ms: number | undefined
  readonly timersDue: number | undefined
  readonly deliveriesWaiting: number | undefined
  readonly deliveriesInFlight: number | undefined
  readonly circuitsOpen: number | undefined
}

/** A cluster, as one node sees it. */
export interface ClusterReport {
  readonly shards: number
  /** Shards that have an owner. */
  readonly owned: number
  readonly nodes: ReadonlyArray<NodeStatus>
}

const nested = (object: JsonObject, name: string): JsonObject => optionalObject(object, name) ?? {}

const nodeStatusOf = (node: JsonObject, shards: ReadonlyMap<string, number>): NodeStatus => {
  const name = textOf(node, "name")
  const [commits, deliveries] = [nested(node, "commits"), nested(node, "deliveries")]
  const leaving = textOf(node, "leaving") === "true"
  return {
    name,
    state: textOf(node, "answers") !== "true" ? "silent" : leaving ? "leaving" : "up",
    version: optionalText(node, "version"),
    uptimeSeconds: optionalNumber(node, "uptime-seconds"),
    memoryBytes: optionalNumber(node, "memory-bytes"),
    shards: shards.get(name) ?? 0,
    kinds: listOf(nested(node, "kinds"), "kind").map((kind) => ({
      name: textOf(kind, "name"),
      active: numberOf(kind, "active"),
      queued: numberOf(kind, "queued"),
      decisions: numberOf(kind, "decisions"),
      quarantined: numberOf(kind, "quarantined")
    })),
    commits: optionalNumber(commits, "commits"),
    commitP99Ms: optionalNumber(commits, "p99-ms"),
    timersDue: optionalNumber(nested(node, "timers"), "due"),
    deliveriesWaiting: optionalNumber(deliveries, "waiting"),
    deliveriesInFlight: optionalNumber(deliveries, "in-flight"),
    circuitsOpen: optionalNumber(deliveries, "circuits-open")
  }
}

export const clusterReportOf = (document: JsonObject): ClusterReport => {
  const owners = listOf(nested(document, "owners"), "owner")
  const shards = new Map(owners.map((one) => [textOf(one, "node"), numberOf(one, "count")]))
  return {
    shards: numberOf(document, "shards"),
    owned: numberOf(document, "owned"),
    nodes: listOf(nested(document, "nodes"), "node").map((node) => nodeStatusOf(node, shards))
  }
}
