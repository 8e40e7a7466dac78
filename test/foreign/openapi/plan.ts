/**
 * A call of every operation of the service, in an order in which each succeeds. `$name` is a value
 * that an earlier call saved, in a path or in a body; HEAD and OPTIONS follow from GET.
 */
import { typefaceName } from "../../../http/formats/html/typeface.ts"
import { brokenMailboxes } from "./broken-mailboxes.ts"

/**
 * Where a value comes from: the last segment of a URI in a field, or the value at a path in the
 * JSON, such as `report/0/href`; of a URI again the last segment.
 */
export type ValueSource = "location" | "edit" | `json:${string}`

/** One call. */
export interface Call {
  /** `POST /mailboxes`. */
  readonly key: string
  /** The documented status of its success. */
  readonly status: number
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly save?: Readonly<Record<string, ValueSource>>
  /** Repeated until this member of the JSON has this value. */
  readonly until?: readonly [member: string, value: string]
}

type Options = Omit<Call, "key" | "status">

const call = (key: string, status: number, options: Options = {}): Call => ({
  key,
  status,
  ...options
})

/** Takes no connection (RFC 5737). */
const nowhere = "http://192.0.2.1/"

/** No service relays to a private address unless its operator allows it: it fails at once. */
const refused = "http://10.0.0.1/"

const item = { description: "A message", url: "http://example.org/m" }

const files: ReadonlyArray<Call> = [
  "/",
  "/problems",
  "/openapi.json",
  "/style.css",
  "/page.js",
  "/live.js",
  "/list.js",
  "/charts.js",
  "/chips.js",
  "/notify.js",
  "/search.js",
  "/service-worker.js",
  "/manifest.webmanifest",
  "/icon.png",
  "/fonts/OFL.txt",
  "/robots.txt",
  "/.well-known/security.txt",
  "/favicon.ico",
  "/livez",
  "/readyz",
  "/metrics",
  "/archive",
  "/admin",
  "/cluster",
  "/cluster/history",
  "/cluster/messages",
  "/limits",
  "/settings"
].map((path) => call(`GET ${path}`, 200))

const content: ReadonlyArray<Call> = [
  call("POST /content", 202, { body: "Hello!", save: { content: "location", edit: "edit" } }),
  call("GET /content/{content}", 200, { path: { content: "$content" } }),
  call("POST /content/{content}", 202, {
    path: { content: "$content" },
    body: { status: "received", description: "Thanks" },
    save: { receipt: "location" }
  }),
  call("GET /content/{content}/receipts", 200, { path: { content: "$edit" } }),
  call("GET /content/{content}/receipts/{receipt}", 200, {
    path: { content: "$edit", receipt: "$receipt" }
  }),
  call("PUT /content/{content}", 204, { path: { content: "$edit" }, body: "Hello again!" }),
  call("GET /content", 200),
  call("DELETE /content/{content}", 204, { path: { content: "$edit" } }),
  call("POST /content", 202, { body: "Goodbye!", save: { edit: "edit" } }),
  call("POST /content/{content}/removal", 303, { path: { content: "$edit" }, body: {} })
]

const account = { account: "ann" }

const accounts: ReadonlyArray<Call> = [
  call("POST /accounts", 201, {
    body: { name: "ann", role: ["quotes"] },
    save: { secret: "json:token/0/text" }
  }),
  call("GET /accounts", 200),
  call("GET /accounts/{account}", 200, { path: account }),
  call("PUT /accounts/{account}", 200, { path: account, body: {} }),
  call("POST /accounts/{account}", 200, {
    path: account,
    body: { method: "put", "failure-reports": "" }
  }),
  call("POST /accounts/{account}/token", 201, {
    path: account,
    body: { name: "laptop", expires: "P30D" },
    save: { token: "json:id" }
  }),
  call("GET /accounts/{account}/tokens", 200, { path: account }),
  call("GET /accounts/{account}/tokens/{token}", 200, { path: { ...account, token: "$token" } }),
  call("GET /accounts/{account}/export", 200, { path: account }),
  call("DELETE /accounts/{account}/tokens/{token}", 204, { path: { ...account, token: "$token" } }),
  call("POST /accounts/{account}/token", 201, {
    path: account,
    body: { name: "spare", expires: "P30D" },
    save: { spare: "json:id" }
  }),
  call("POST /accounts/{account}/tokens/{token}", 303, {
    path: { ...account, token: "$spare" },
    body: { method: "delete" }
  })
]

const browsers = "/accounts/{account}/browser-sessions"

const browser = { path: { ...account, browserSession: "$browserSession" } }

/** Signs a browser in to the account; none is kept signed in by a cookie. */
const signsIn: ReadonlyArray<Call> = [
  call("POST /sign-in", 303, { body: { account: "ann", token: "$secret" } }),
  call(`GET ${browsers}`, 200, {
    path: account,
    save: { browserSession: "json:browser-session/0/id" }
  })
]

const signIns: ReadonlyArray<Call> = [
  call("GET /sign-in", 200),
  ...signsIn,
  call(`GET ${browsers}/{browserSession}`, 200, browser),
  call(`POST ${browsers}/{browserSession}`, 303, { ...browser, body: { method: "delete" } }),
  ...signsIn,
  call(`DELETE ${browsers}/{browserSession}`, 204, browser),
  ...signsIn,
  call(`POST ${browsers}`, 303, { path: account, body: { method: "delete" } }),
  call(`DELETE ${browsers}`, 204, { path: account }),
  call("GET /sign-out", 200),
  call("POST /sign-out", 303, { body: {} })
]

const removals: ReadonlyArray<Call> = [
  call("DELETE /accounts/{account}/tokens", 204, { path: account }),
  call("DELETE /accounts/{account}", 204, { path: account })
]

const audits: ReadonlyArray<Call> = [
  call("GET /audit", 200, { query: { action: "account.create", since: "2020-01-01T00:00:00Z" } }),
  call("GET /audit/chain", 200)
]

const mailbox = { mailbox: "generated" }

const someTime = "2026-01-01T00:00:00Z"

const stored = { ...mailbox, notification: "$notification" }

const readMarks: ReadonlyArray<Call> = [
  call("PUT /mailboxes/{mailbox}/notifications/{notification}/read", 204, { path: stored }),
  call("DELETE /mailboxes/{mailbox}/notifications/{notification}/read", 204, { path: stored }),
  call("POST /mailboxes/{mailbox}/notifications/{notification}/read", 303, {
    path: stored,
    body: { method: "put" }
  }),
  call("PUT /mailboxes/{mailbox}/read", 204, { path: mailbox, body: { time: someTime } }),
  call("POST /mailboxes/{mailbox}/read", 303, { path: mailbox, body: { time: someTime } })
]

const report = { path: { report: "$report" } }

const reported: ReadonlyArray<Call> = [
  call("POST /mailboxes/{mailbox}/notifications/{notification}/report", 202, {
    path: stored,
    body: { reason: "spam" }
  }),
  call("GET /reports", 200, { save: { report: "json:report/0/href" } })
]

/** Blocks of the service, or of a mailbox. */
const blocksAt = (pattern: string, of: Pick<Call, "path">): ReadonlyArray<Call> => {
  const block = { path: { ...of.path, block: "$block" } }
  const blocked = (body: Readonly<Record<string, string>>) =>
    call(`POST ${pattern}`, 201, { ...of, body, save: { block: "location" } })
  return [
    blocked({ network: "203.0.113.0/24", expires: "P7D", reason: "spam" }),
    call(`GET ${pattern}`, 200, of),
    call(`GET ${pattern}/{block}`, 200, block),
    call(`POST ${pattern}/{block}`, 303, { ...block, body: { method: "delete" } }),
    blocked({ host: "spam.example" }),
    call(`DELETE ${pattern}/{block}`, 204, block)
  ]
}

const mailboxes: ReadonlyArray<Call> = [
  call("POST /mailboxes", 201, { body: { name: "generated", title: "A", deposit: "anyone" } }),
  call("GET /mailboxes", 200),
  call("POST /mailboxes/{mailbox}", 202, {
    path: mailbox,
    body: { item },
    save: { notification: "location" }
  }),
  call("GET /mailboxes/{mailbox}", 200, { path: mailbox }),
  call("GET /mailboxes/{mailbox}/notifications/{notification}", 200, { path: stored }),
  call("GET /mailboxes/{mailbox}/notifications/{notification}/depositor", 200, { path: stored }),
  ...readMarks,
  ...reported,
  call("GET /reports/{report}", 200, report),
  call("POST /reports/{report}", 303, { ...report, body: { method: "delete" } }),
  ...reported,
  call("DELETE /reports/{report}", 204, report),
  call("DELETE /mailboxes/{mailbox}/notifications/{notification}", 204, { path: stored }),
  call("POST /mailboxes/{mailbox}", 202, {
    path: mailbox,
    body: { item: { ...item, description: "Another" } },
    save: { notification: "location" }
  }),
  call("POST /mailboxes/{mailbox}/notifications/{notification}", 303, {
    path: stored,
    body: { method: "delete" }
  }),
  call("PUT /mailboxes/{mailbox}", 200, { path: mailbox, body: { title: "B", retention: "P1D" } }),
  call("POST /mailboxes/{mailbox}/password", 200, { path: mailbox, body: {} }),
  call("POST /mailboxes/{mailbox}/settings", 303, {
    path: mailbox,
    body: { method: "put", title: "B", retention: "P1D" }
  }),
  call("POST /mailboxes/{mailbox}/webhooks", 303, {
    path: mailbox,
    body: { webhook: "{/title}", "webhook-tags": "shop" }
  }),
  call("PUT /mailboxes/{mailbox}/webhook-secret", 204, {
    path: mailbox,
    body: { secret: "0123456789abcdef" }
  }),
  call("DELETE /mailboxes/{mailbox}/webhook-secret", 204, { path: mailbox }),
  ...blocksAt("/mailboxes/{mailbox}/blocks", { path: mailbox }),
  ...blocksAt("/blocks", {})
]

const registered = { ...mailbox, registration: "$registration" }

const registrations: ReadonlyArray<Call> = [
  call("POST /mailboxes/{mailbox}/registrations", 201, {
    path: mailbox,
    body: { callback: nowhere },
    save: { registration: "location" }
  }),
  call("GET /mailboxes/{mailbox}/registrations", 200, { path: mailbox }),
  call("GET /mailboxes/{mailbox}/registrations/{registration}", 200, { path: registered }),
  call("GET /mailboxes/{mailbox}/registrations/{registration}/attempts", 200, {
    path: registered
  }),
  call("PUT /mailboxes/{mailbox}/registrations/{registration}", 200, {
    path: registered,
    body: { callback: `${nowhere}other` }
  }),
  call("POST /mailboxes/{mailbox}/registrations/{registration}/secret", 200, {
    path: registered,
    body: {}
  }),
  call("POST /mailboxes/{mailbox}/registrations/{registration}/signature-check", 200, {
    path: registered,
    body: { headers: "webhook-id: x", body: "<changed/>" }
  }),
  call("POST /mailboxes/{mailbox}/registrations", 201, {
    path: mailbox,
    // A browser needs no verification, and nothing is sent to this one.
    body: {
      endpoint: "https://10.0.0.1/",
      keys: {
        p256dh:
          "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth: "BTBZMqHH6r4Tts7J_aSIgg"
      }
    },
    save: { browser: "location" }
  }),
  call("POST /mailboxes/{mailbox}/registrations/{registration}/test", 200, {
    path: { ...registered, registration: "$browser" },
    body: {}
  }),
  call("POST /mailboxes/{mailbox}/registrations/{registration}", 200, {
    path: registered,
    body: { method: "put", callback: nowhere }
  }),
  call("DELETE /mailboxes/{mailbox}/registrations/{registration}", 204, { path: registered })
]

const own = { account: "admin" }

const sent = { ...own, notification: "$sent" }

const submission = (url: string) => ({
  path: own,
  body: { to: [url], item },
  save: { sent: "location" }
} as const)

const outgoing: ReadonlyArray<Call> = [
  call("GET /outgoing", 303),
  call("POST /outgoing", 307, { body: { to: nowhere, description: "A message" } }),
  call("POST /outgoing/{account}", 202, submission(refused)),
  call("GET /outgoing/{account}", 200, { path: own }),
  call("PUT /outgoing/{account}/pauses", 200, {
    path: own,
    body: { pause: [{ origin: "https://receiver.example" }] }
  }),
  call("GET /outgoing/{account}/pauses", 200, { path: own }),
  call("POST /outgoing/{account}/pauses", 200, { path: own, body: { method: "put" } }),
  call("GET /outgoing/{account}/{notification}", 200, { path: sent, until: ["status", "failed"] }),
  call("GET /outgoing/{account}/{notification}/attempts", 200, { path: sent }),
  call("POST /outgoing/{account}/{notification}/retry", 202, {
    path: sent,
    body: { to: [refused] }
  }),
  call("POST /outgoing/{account}/{notification}/replacement", 202, { path: sent, body: { item } }),
  call("POST /outgoing/{account}/{notification}/withdrawal", 202, { path: sent, body: {} }),
  call("POST /outgoing/{account}/retry", 202, {
    path: own,
    query: { since: "2020-01-01T00:00:00Z" },
    body: { to: [refused] }
  }),
  call("DELETE /outgoing/{account}/{notification}", 204, { path: sent }),
  call("POST /outgoing/{account}", 202, submission(nowhere)),
  call("POST /outgoing/{account}/{notification}", 204, { path: sent, body: { method: "delete" } })
]

const cabinet = { path: { cabinet: "$cabinet" } }

const view = { title: "All", mailbox: [{ href: "/mailboxes/generated" }] }

const cabinets: ReadonlyArray<Call> = [
  call("POST /cabinets", 201, { body: view, save: { cabinet: "location" } }),
  call("GET /cabinets", 200),
  call("GET /cabinets/{cabinet}", 200, cabinet),
  call("PUT /cabinets/{cabinet}", 200, { ...cabinet, body: { ...view, title: "Mine" } }),
  call("POST /cabinets/{cabinet}", 303, { ...cabinet, body: view }),
  call("DELETE /cabinets/{cabinet}", 204, cabinet),
  call("DELETE /mailboxes/{mailbox}", 204, { path: mailbox })
]

const session = { path: { session: "$session" } }

const begun = call("POST /sessions", 201, {
  body: { continue: "true" },
  save: { session: "location" }
})

const answers: ReadonlyArray<Call> = [
  call("PUT /sessions/{session}/name", 201, { ...session, body: { text: "Robin" } }),
  call("PUT /sessions/{session}/quest", 201, { ...session, body: { text: "The Grail" } })
]

const sessions: ReadonlyArray<Call> = [
  call("GET /cross_bridge", 200),
  begun,
  call("GET /sessions", 200),
  call("GET /sessions/{session}", 200, session),
  ...answers,
  call("GET /sessions/{session}/name", 200, session),
  call("GET /sessions/{session}/quest", 200, session),
  call("POST /sessions/{session}/name", 303, { ...session, body: { answer: "Robin" } }),
  call("POST /sessions/{session}/quest", 303, { ...session, body: { answer: "The Grail" } }),
  call("PUT /sessions/{session}/hard_question", 201, { ...session, body: { text: "Assur" } }),
  call("GET /sessions/{session}/hard_question", 200, session),
  begun,
  ...answers,
  call("POST /sessions/{session}/hard_question", 303, { ...session, body: { answer: "Assur" } }),
  call("DELETE /sessions/{session}", 204, session),
  call("GET /questions/name_question", 200),
  call("GET /questions/quest_question", 200, { query: { name: "Robin" } }),
  call("GET /questions/hard_question", 200, {
    query: { name: "Robin", quest: "Grail", air_speed: "Assur" }
  })
]

const quote = { path: { symbol: "ACME" } }

const quotes: ReadonlyArray<Call> = [
  call("POST /quotes", 201, {
    body: { symbol: "ACME", price: { currency: "USD", text: "1.50" }, name: "Acme" }
  }),
  call("GET /quotes", 200, { query: { return: "price name" } }),
  call("GET /quotes/{symbol}", 200, quote),
  call("PUT /quotes/{symbol}", 200, { ...quote, body: { price: "2.00" } }),
  call("POST /quotes/{symbol}", 303, { ...quote, body: { price: "2.50" } }),
  call("DELETE /quotes/{symbol}", 204, quote)
]

const customer = { path: { customer: "$customer" } }

const row = { name: "Neo", age: 37 }

const customers: ReadonlyArray<Call> = [
  call("POST /customers", 201, { body: row, save: { customer: "location" } }),
  call("GET /customers", 200, { query: { return: "name age" } }),
  call("GET /customers/{customer}", 200, customer),
  call("PUT /customers/{customer}", 200, { ...customer, body: { ...row, age: 38 } }),
  call("POST /customers/{customer}", 303, { ...customer, body: row }),
  call("PUT /customers", 200, {
    body: { customer: [{ id: "trinity", name: "Trinity", age: 35 }] },
    save: { load: "location" }
  }),
  call("GET /loads/{load}", 200, { path: { load: "$load" } }),
  call("DELETE /customers/{customer}", 204, customer)
]

const query = { path: { query: "$query" } }

const condition = {
  on: "customers",
  all: { where: [{ field: "age", op: "ge", value: "21" }] },
  return: "name age"
}

const queries: ReadonlyArray<Call> = [
  call("POST /queries", 201, { body: condition, save: { query: "location" } }),
  call("GET /queries", 200),
  call("GET /queries/{query}", 200, query),
  call("PUT /queries/{query}", 200, { ...query, body: { ...condition, title: "Adults" } }),
  call("POST /queries/{query}", 303, { ...query, body: condition }),
  call("DELETE /queries/{query}", 204, query)
]

const broken = (id: string | undefined = "") => ({ path: { kind: "mailbox", id } })

const quarantines: ReadonlyArray<Call> = [
  call("GET /cluster/actors/{kind}", 200, { path: { kind: "account" } }),
  call("GET /cluster/actors/{kind}", 303, { path: { kind: "account" }, query: { id: "admin" } }),
  call("GET /cluster/actors/{kind}/{id}", 200, { path: { kind: "account", id: "admin" } }),
  call("GET /cluster/quarantine/{kind}/{id}", 200, broken(brokenMailboxes[0])),
  call("DELETE /cluster/quarantine/{kind}/{id}", 204, broken(brokenMailboxes[0])),
  call("POST /cluster/quarantine/{kind}/{id}", 204, { ...broken(brokenMailboxes[1]), body: {} })
]

/** A call of every operation, except HEAD and OPTIONS. */
export const plan: ReadonlyArray<Call> = [
  ...files,
  call("GET /fonts/{file}", 200, { path: { file: typefaceName } }),
  call("GET /problems/{slug}", 200, { path: { slug: "gone" } }),
  call("GET /docs", 200, { query: { q: "mailbox" } }),
  call("GET /docs/api", 200),
  call("GET /docs/{page}", 200, { path: { page: "quick-start" } }),
  call("GET /docs/how-to/{page}", 200, { path: { page: "recipes" } }),
  call("GET /docs/modules/{page}", 200, { path: { page: "http" } }),
  call("GET /docs/pictures/{file}", 200, { path: { file: "mailbox.webp" } }),
  call("GET /docs/reference/{page}", 200, { path: { page: "settings" } }),
  call("GET /docs/api/{resource}", 200, { path: { resource: "mailboxes" } }),
  ...content,
  ...accounts,
  ...signIns,
  ...removals,
  ...audits,
  ...mailboxes,
  ...registrations,
  ...outgoing,
  ...cabinets,
  ...sessions,
  ...quotes,
  ...customers,
  ...queries,
  ...quarantines
]
