/**
 * A valid request for each operation of the routing table, to resources of one account, as
 * everybody who may or may not send it. Requests that change something have a resource of their
 * own, so that every caller finds the same.
 */
import { typefacePath } from "../../http/formats/html/typeface.ts"
import { childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { adminToken, type Answered, type Harness, type Sending } from "./harness.ts"

/** Who sends a request, by the columns of `authorization.md`. */
export const callers = [
  "anonymous",
  "other",
  "owner",
  "owner admin",
  "owner send",
  "owner read",
  "owner deposit",
  "owner its mailbox",
  "owner another mailbox",
  "owner revoked",
  "admin",
  "admin admin",
  "admin send read deposit"
] as const

export type AuthorizationCaller = typeof callers[number]

const form = "application/x-www-form-urlencoded"
const item = "<item><description>d</description><url>http://example.org/m</url></item>"
const notification = `<notification>${item}</notification>`
const callback = "<registration><callback>http://192.0.2.1/</callback></registration>"
/** The push subscription of a browser, whose endpoint nothing is sent to. */
const browserAt = (round: number): string =>
  `<registration><endpoint>https://10.0.0.1/${round}</endpoint><keys>` +
  "<p256dh>" +
  "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4" +
  "</p256dh><auth>BTBZMqHH6r4Tts7J_aSIgg</auth></keys></registration>"
const quote = "<quote><price currency=\"USD\">1.50</price></quote>"
const customer = "<customer><name>Neo</name><age>37</age></customer>"
const query = "<query on=\"customers\"/>"
const cabinet = "<cabinet><mailbox href=\"/mailboxes/box\"/></cabinet>"
const answer = "<answer>What do you mean? An African or European swallow?</answer>"
const formAnswer = "answer=What+do+you+mean%3F+An+African+or+European+swallow%3F"
const removal = { type: form, body: "method=delete" }
const plain = { type: "text/plain", body: "Hello!" }

/** The bodies of requests, by their operations. */
const bodies: Readonly<Record<string, Sending>> = {
  "PUT /accounts/{account}": { body: "<account/>" },
  "POST /accounts/{account}": { type: form, body: "method=put" },
  "POST /accounts/{account}/token": { body: "<token scope=\"admin\"/>" },
  "POST /accounts/{account}/tokens/{token}": removal,
  "POST /accounts/{account}/browser-sessions": removal,
  "POST /accounts/{account}/browser-sessions/{browserSession}": removal,
  "POST /sign-in": { type: form, body: `account=admin&token=${adminToken}` },
  "POST /cabinets": { body: cabinet },
  "PUT /cabinets/{cabinet}": { body: cabinet },
  "POST /cabinets/{cabinet}": removal,
  "POST /content": plain,
  "PUT /content/{content}": plain,
  "POST /content/{content}": { body: "<receipt status=\"received\"/>" },
  "POST /blocks/{block}": removal,
  "POST /mailboxes/{mailbox}/blocks/{block}": removal,
  "POST /mailboxes/{mailbox}/notifications/{notification}/report": {
    body: "<report><reason>r</reason></report>"
  },
  "POST /reports/{report}": removal,
  "PUT /customers": {
    body: `<customers>${customer.replace(">", " id=\"a\">")}</customers>`
  },
  "POST /customers": { body: customer },
  "PUT /customers/{customer}": { body: customer },
  "POST /customers/{customer}": removal,
  "POST /mailboxes/{mailbox}": { body: notification },
  "PUT /mailboxes/{mailbox}": { body: "<mailbox><title>Box</title></mailbox>" },
  "POST /mailboxes/{mailbox}/notifications/{notification}": removal,
  "POST /mailboxes/{mailbox}/notifications/{notification}/read": { type: form, body: "method=put" },
  "PUT /mailboxes/{mailbox}/read": { body: "<read><time>2026-01-01T00:00:00Z</time></read>" },
  "POST /mailboxes/{mailbox}/read": { type: form, body: "time=2026-01-01T00:00:00Z" },
  "POST /mailboxes/{mailbox}/registrations": { body: callback },
  "PUT /mailboxes/{mailbox}/registrations/{registration}": { body: callback },
  "POST /mailboxes/{mailbox}/registrations/{registration}": removal,
  "POST /mailboxes/{mailbox}/registrations/{registration}/signature-check": {
    type: form,
    body: "headers=webhook-id%3A+x&body=x"
  },
  "POST /mailboxes/{mailbox}/settings": { type: form, body: "method=put" },
  "POST /mailboxes/{mailbox}/webhooks": { type: form, body: "sender=github" },
  "PUT /mailboxes/{mailbox}/webhook-secret": {
    body: "<webhook-secret><secret>0123456789abcdef</secret></webhook-secret>"
  },
  "POST /outgoing": {
    type: form,
    body: new URLSearchParams({ to: "http://192.0.2.1/", description: "d", url: "http://a.test/" })
      .toString()
  },
  "PUT /outgoing/{account}/pauses": { body: "<pauses/>" },
  "POST /outgoing/{account}/pauses": { type: form, body: "method=put" },
  "POST /outgoing/{account}/retry": { type: form, body: "since=2020-01-01T00:00:00Z" },
  "POST /outgoing/{account}/{notification}": removal,
  "POST /outgoing/{account}/{notification}/replacement": { body: notification },
  "POST /queries": { body: query },
  "PUT /queries/{query}": { body: query },
  "POST /queries/{query}": removal,
  "PUT /quotes/{symbol}": { body: quote },
  "POST /quotes/{symbol}": removal,
  "POST /sessions": { body: "<answer continue=\"true\">yes</answer>" },
  ...Object.fromEntries(["name", "quest", "hard_question"].flatMap((step) => [
    [`PUT /sessions/{session}/${step}`, { body: answer }],
    [`POST /sessions/{session}/${step}`, { type: form, body: formAnswer }]
  ]))
}

/** The queries of requests, by the paths of their operations. */
const queries: Readonly<Record<string, string>> = {
  "/questions/quest_question": "?name=Robin",
  "/questions/hard_question": "?name=Robin&quest=Grail"
}

/** `name:token`. */
type Account = string

const nameOf = (account: Account): string => account.split(":")[0] ?? ""

const bearer = (account: Account): Sending["headers"] => ({
  Authorization: `Bearer ${account.slice(nameOf(account).length + 1)}`
})

/** Makes the resources of requests, and the credentials of their callers. */
export class AuthorizationRequests {
  private readonly send: Harness["send"]
  private readonly base: string
  private readonly admin: Account = `admin:${adminToken}`
  private readonly made = new Map<string, Promise<string>>()
  private round = 0

  constructor({ base, send }: Harness) {
    this.send = send
    this.base = base
  }

  /** The path of an operation, of resources that exist, and the type of its request's body. */
  async target(operation: string): Promise<{ readonly path: string; readonly type: string }> {
    const [method, pattern = ""] = operation.split(" ")
    const path = await this.pathOf(pattern, await this.owner(), method !== "GET")
    return { path, type: this.bodyOf(operation).type ?? "application/xml" }
  }

  /** Sends the request of an operation as this caller. */
  async ask(operation: string, caller: AuthorizationCaller): Promise<Answered> {
    const [method = "", pattern = ""] = operation.split(" ")
    const isRead = method === "GET" || method === "HEAD"
    const isOwn = !isRead && pattern.startsWith("/accounts/{account}")
    const owner = await (isOwn ? this.openAccount() : this.owner())
    const path = await this.pathOf(pattern, owner, !isRead)
    const [, mailbox = "box"] = /^\/mailboxes\/([^/]+)/.exec(path) ?? []
    const account = await this.credentialsOf(caller, owner, mailbox)
    return this.asking(operation, path, account === undefined ? {} : bearer(account))
  }

  /** Sends the request of an operation to its path, with these header fields. */
  asking(operation: string, path: string, headers: Sending["headers"]): Promise<Answered> {
    const [method = "", pattern = ""] = operation.split(" ")
    // `/metrics` is open to clients on the service's machine.
    const elsewhere = pattern === "/metrics" ? { "X-Forwarded-For": "203.0.113.9" } : {}
    return this.send(method, path + (queries[pattern] ?? ""), {
      ...this.bodyOf(operation),
      headers: { ...elsewhere, ...headers }
    })
  }

  private bodyOf(operation: string): Sending {
    const name = `new-${this.round++}`
    switch (operation) {
      case "POST /accounts":
        return { body: `<account><name>${name}</name></account>` }
      case "POST /blocks":
      case "POST /mailboxes/{mailbox}/blocks":
        return { body: `<block><account>${name}</account></block>` }
      case "POST /mailboxes":
        return { body: `<mailbox><name>${name}</name></mailbox>` }
      case "POST /quotes":
        return { body: quote.replace("<quote>", `<quote symbol="Q${this.round}">`) }
      case "POST /outgoing/{account}":
        return { body: `<notification><to>${this.base}/mailboxes/box</to>${item}</notification>` }
      default:
        return bodies[operation] ?? {}
    }
  }

  /** A value that is made once. */
  private once(name: string, make: () => Promise<string>): Promise<string> {
    const known = this.made.get(name) ?? make()
    this.made.set(name, known)
    return known
  }

  /** Creates something; returns its path. */
  private async create(
    account: Account | undefined,
    path: string,
    options: Sending,
    method = "POST"
  ): Promise<Answered> {
    const headers = { ...options.headers, ...account === undefined ? {} : bearer(account) }
    const created = await this.send(method, path, { ...options, headers })
    if (created.status >= 300) throw new Error(`${path}: ${created.status} ${created.text}`)
    return created
  }

  private async createdPath(...creation: Parameters<AuthorizationRequests["create"]>) {
    return (await this.create(...creation)).header("location").replace(this.base, "")
  }

  private async openAccount(roles = ""): Promise<Account> {
    const name = `account-${this.round++}`
    const body = `<account><name>${name}</name>${roles}</account>`
    const created = await this.create(this.admin, "/accounts", { body })
    return `${name}:${created.child("token")}`
  }

  /** Has the roles of rows, and the mailbox `box`. */
  private owner(): Promise<Account> {
    return this.once("owner", async () => {
      const owner = await this.openAccount("<role>quotes</role><role>customers</role>")
      await this.create(owner, "/mailboxes", { headers: { Slug: "box" } })
      return owner
    })
  }

  private scoped(account: Account, scope: string): Promise<Account> {
    return this.once(`${nameOf(account)} ${scope}`, async () => {
      const path = `/accounts/${nameOf(account)}/token`
      const made = await this.create(account, path, { body: `<token scope="${scope}"/>` })
      return `${nameOf(account)}:${textOf(made.xml)}`
    })
  }

  private async revoked(account: Account): Promise<Account> {
    return this.once(`${nameOf(account)} revoked`, async () => {
      const path = `/accounts/${nameOf(account)}/token`
      const made = await this.create(account, path, {})
      await this.create(account, made.header("location"), {}, "DELETE")
      return `${nameOf(account)}:${textOf(made.xml)}`
    })
  }

  private async credentialsOf(
    caller: AuthorizationCaller,
    owner: Account,
    mailbox: string
  ): Promise<Account | undefined> {
    switch (caller) {
      case "anonymous":
        return undefined
      case "other":
        return this.once("other", () => this.openAccount())
      case "owner":
        return owner
      case "owner its mailbox":
        return this.scoped(owner, `mailbox:${mailbox}`)
      case "owner another mailbox":
        return this.scoped(owner, "mailbox:another")
      case "owner revoked":
        return this.revoked(owner)
      case "admin":
        return this.admin
      default: {
        const [name = "", ...scopes] = caller.split(" ")
        return this.scoped(name === "admin" ? this.admin : owner, scopes.join(" "))
      }
    }
  }

  /** The path of an operation: of resources of their own if `isFresh`. */
  private async pathOf(pattern: string, owner: Account, isFresh: boolean): Promise<string> {
    const account = nameOf(owner)
    const resource = /^(.*\})/.exec(pattern)?.[1] ?? ""
    const rest = pattern.slice(resource.length)
    if (resource === "") return rest
    if (resource === "/accounts/{account}") return `/accounts/${account}${rest}`
    if (resource === "/outgoing/{account}") return `/outgoing/${account}${rest}`
    const isOpened = resource === "/mailboxes/{mailbox}" && rest !== "" || !isFresh
    const make = () => this.resource(resource, owner, isFresh ? rest : undefined)
    return await (isOpened ? this.once(resource, make) : make()) + rest
  }

  /** A new resource of a pattern; a session has the answers before `step`, or all of them. */
  private async resource(
    pattern: string,
    owner: Account,
    step: string | undefined
  ): Promise<string> {
    switch (pattern) {
      case "/accounts/{account}/browser-sessions/{browserSession}":
        return this.browserSession(owner)
      case "/accounts/{account}/tokens/{token}":
        return this.createdPath(owner, `/accounts/${nameOf(owner)}/token`, {})
      case "/blocks/{block}":
        return this.block(this.admin, "/blocks")
      case "/cabinets/{cabinet}":
        return this.createdPath(owner, "/cabinets", { body: cabinet })
      case "/cluster/actors/{kind}":
        return "/cluster/actors/mailbox"
      case "/cluster/actors/{kind}/{id}":
        return "/cluster/actors/account/admin"
      case "/cluster/quarantine/{kind}/{id}":
        return "/cluster/quarantine/mailbox/none"
      case "/content/{content}":
        return this.createdPath(owner, "/content", plain)
      case "/content/{content}/receipts/{receipt}":
        return this.receipt(owner)
      case "/customers/{customer}":
        return this.createdPath(owner, "/customers", { body: customer })
      case "/docs/{page}":
        return "/docs/quick-start"
      case "/docs/api/{resource}":
        return "/docs/api/mailboxes"
      case "/docs/how-to/{page}":
        return "/docs/how-to/recipes"
      case "/docs/modules/{page}":
        return "/docs/modules/http"
      case "/docs/pictures/{file}":
        return "/docs/pictures/mailbox.webp"
      case "/docs/reference/{page}":
        return "/docs/reference/settings"
      case "/fonts/{file}":
        return typefacePath
      case "/loads/{load}":
        return this.createdPath(owner, "/customers", bodies["PUT /customers"] ?? {}, "PUT")
      case "/mailboxes/{mailbox}":
        return this.createdPath(owner, "/mailboxes", { headers: { Slug: `box-${this.round++}` } })
      case "/mailboxes/{mailbox}/blocks/{block}":
        return this.block(owner, "/mailboxes/box/blocks")
      case "/mailboxes/{mailbox}/notifications/{notification}":
        return this.deposit(owner, "/mailboxes/box")
      case "/mailboxes/{mailbox}/registrations/{registration}":
        // A test event is for a callback that is verified, as a browser is at once.
        return this.createdPath(owner, "/mailboxes/box/registrations", {
          body: step === "/test" ? browserAt(this.round++) : callback
        })
      case "/outgoing/{account}/{notification}": {
        const body = `<notification><to>http://192.0.2.1/</to>${item}</notification>`
        return this.createdPath(owner, `/outgoing/${nameOf(owner)}`, { body })
      }
      case "/problems/{slug}":
        return "/problems/not-found"
      case "/queries/{query}":
        return this.createdPath(owner, "/queries", { body: query })
      case "/quotes/{symbol}":
        return this.quote(owner)
      case "/reports/{report}":
        return this.report()
      case "/sessions/{session}":
        return this.session(owner, step)
      default:
        throw new Error(`add the resource ${pattern} to authorization-requests.ts`)
    }
  }

  private async browserSession(owner: Account): Promise<string> {
    const [account = "", token = ""] = owner.split(":")
    const body = new URLSearchParams({ account, token }).toString()
    await this.send("POST", "/sign-in", { type: form, body })
    const listed = await this.create(owner, `/accounts/${account}/browser-sessions`, {}, "GET")
    const [session] = childrenOf(listed.xml)
    return (session?.attributes["href"] ?? "").replace(this.base, "")
  }

  private block(account: Account, path: string): Promise<string> {
    const body = `<block><account>blocked-${this.round++}</account></block>`
    return this.createdPath(account, path, { body })
  }

  private deposit(owner: Account, mailbox: string): Promise<string> {
    const body = notification.replace(">d<", `>${this.round++}<`)
    return this.createdPath(owner, mailbox, { body })
  }

  /** By another account each time, since each may report a few an hour. */
  private async report(): Promise<string> {
    const reporter = await this.openAccount()
    const slug = { headers: { Slug: `reported-${this.round++}` } }
    const mailbox = await this.createdPath(reporter, "/mailboxes", slug)
    const path = `${await this.deposit(reporter, mailbox)}/report`
    const options = bodies["POST /mailboxes/{mailbox}/notifications/{notification}/report"] ?? {}
    await this.create(reporter, path, options)
    const listed = await this.create(this.admin, "/reports", {}, "GET")
    const [newest] = childrenOf(listed.xml)
    return (newest?.attributes["href"] ?? "").replace(this.base, "")
  }

  private async quote(owner: Account): Promise<string> {
    const path = `/quotes/Q${this.round++}`
    await this.create(owner, path, { body: quote }, "PUT")
    return path
  }

  private async receipt(owner: Account): Promise<string> {
    const path = await this.createdPath(owner, "/content", plain)
    await this.create(undefined, path, bodies["POST /content/{content}"] ?? {})
    return `${path}/receipts/1`
  }

  private async session(owner: Account, until: string | undefined): Promise<string> {
    const path = await this.createdPath(owner, "/sessions", bodies["POST /sessions"] ?? {})
    for (const step of ["/name", "/quest", "/hard_question"]) {
      if (step === until || until === "") break
      await this.create(owner, path + step, { body: answer }, "PUT")
    }
    return path
  }
}
