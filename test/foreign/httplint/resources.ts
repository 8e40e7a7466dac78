/** Makes one resource of each kind, and requests every path of `/openapi.json` in several ways. */
import { typefacePath } from "../../../http/formats/html/typeface.ts"
import { type Exchange, fieldOf, type Recorder, type RequestOptions } from "./exchanges.ts"

const notification = "<notification><item><description>d</description><url>http://example.org/m" +
  "</url></item></notification>"

/** Takes no connection (RFC 5737). */
const nowhere = "http://192.0.2.1/"

const textOf = ({ content }: Exchange): string => Buffer.from(content, "base64").toString("utf8")

const pathOf = (uri: string, base: string): string => new URL(uri, base).pathname

const locationOf = (made: Exchange): string =>
  pathOf(fieldOf(made, "location") || made.uri, made.uri)

/** The templates of which an example is made; an action of a resource needs none of its own. */
export const exampleTemplates = [
  "/mailboxes/{mailbox}",
  "/mailboxes/{mailbox}/notifications/{notification}",
  "/mailboxes/{mailbox}/notifications/{notification}/depositor",
  "/mailboxes/{mailbox}/registrations",
  "/mailboxes/{mailbox}/registrations/{registration}",
  "/mailboxes/{mailbox}/registrations/{registration}/attempts",
  "/mailboxes/{mailbox}/blocks",
  "/mailboxes/{mailbox}/blocks/{block}",
  "/blocks/{block}",
  "/reports/{report}",
  "/content/{content}",
  "/content/{content}/receipts",
  "/content/{content}/receipts/{receipt}",
  "/sessions/{session}",
  "/sessions/{session}/name",
  "/sessions/{session}/quest",
  "/sessions/{session}/hard_question",
  "/accounts/{account}",
  "/accounts/{account}/tokens",
  "/accounts/{account}/tokens/{token}",
  "/accounts/{account}/export",
  "/accounts/{account}/browser-sessions",
  "/accounts/{account}/browser-sessions/{browserSession}",
  "/outgoing/{account}",
  "/outgoing/{account}/pauses",
  "/outgoing/{account}/{notification}",
  "/outgoing/{account}/{notification}/attempts",
  "/cabinets/{cabinet}",
  "/quotes/{symbol}",
  "/customers/{customer}",
  "/loads/{load}",
  "/queries/{query}",
  "/problems/{slug}",
  "/fonts/{file}",
  "/docs/{page}",
  "/docs/how-to/{page}",
  "/docs/modules/{page}",
  "/docs/pictures/{file}",
  "/docs/reference/{page}",
  "/docs/api/{resource}",
  "/cluster/actors/{kind}",
  "/cluster/actors/{kind}/{id}",
  "/cluster/quarantine/{kind}/{id}"
] as const

/** The path of one resource of each template. */
export type Examples = Readonly<Record<typeof exampleTemplates[number], string>>

/** Makes resources as the operator does. */
class Maker {
  private readonly recorder: Recorder

  constructor(recorder: Recorder) {
    this.recorder = recorder
  }

  async make(method: string, path: string, body: string, type = "application/xml") {
    const made = await this.recorder.send(method, path, { body, headers: { "Content-Type": type } })
    if (made.status >= 400) throw new Error(`${method} ${path} is ${made.status}: ${textOf(made)}`)
    return made
  }

  /** The path of the new resource. */
  async create(method: string, path: string, body: string): Promise<string> {
    return locationOf(await this.make(method, path, body))
  }

  /** The path of the first `name` in a listing. */
  async first(listing: string, name: string): Promise<string> {
    const got = await this.recorder.send("GET", listing)
    const href = new RegExp(`<${name} href="([^"]+)"`).exec(textOf(got))?.[1]
    if (href === undefined) throw new Error(`${listing} has no ${name}: ${textOf(got)}`)
    return pathOf(href, got.uri)
  }
}

/** A mailbox, and what is below it. */
const makeMailbox = async (maker: Maker) => {
  const mailbox = await maker.create("POST", "/mailboxes", "<mailbox><name>suite</name></mailbox>")
  const deposited = await maker.create("POST", mailbox, notification)
  const callback = `<registration><callback>${nowhere}</callback></registration>`
  const registration = await maker.create("POST", `${mailbox}/registrations`, callback)
  const block = "<block><network>203.0.113.0/24</network></block>"
  await maker.make("POST", `${deposited}/report`, "<report><reason>spam</reason></report>")
  return {
    "/mailboxes/{mailbox}": mailbox,
    "/mailboxes/{mailbox}/notifications/{notification}": deposited,
    "/mailboxes/{mailbox}/notifications/{notification}/depositor": `${deposited}/depositor`,
    "/mailboxes/{mailbox}/registrations": `${mailbox}/registrations`,
    "/mailboxes/{mailbox}/registrations/{registration}": registration,
    "/mailboxes/{mailbox}/registrations/{registration}/attempts": `${registration}/attempts`,
    "/mailboxes/{mailbox}/blocks": `${mailbox}/blocks`,
    "/mailboxes/{mailbox}/blocks/{block}": await maker.create("POST", `${mailbox}/blocks`, block),
    "/blocks/{block}": await maker.create("POST", "/blocks", block),
    "/reports/{report}": await maker.first("/reports", "report"),
    "/cabinets/{cabinet}": await maker.create(
      "POST",
      "/cabinets",
      `<cabinet><mailbox href="${mailbox}"/></cabinet>`
    )
  }
}

/** Content with a receipt. */
const makeContent = async (maker: Maker) => {
  const published = await maker.make("POST", "/content", "<a>Content of the suites.</a>")
  const edit = pathOf(/<([^>]+)>; rel="edit"/.exec(fieldOf(published, "link"))?.[1] ?? "", nowhere)
  const receipts = `${edit}/receipts`
  await maker.make("POST", locationOf(published), "<receipt status=\"received\"/>")
  return {
    "/content/{content}": locationOf(published),
    "/content/{content}/receipts": receipts,
    "/content/{content}/receipts/{receipt}": await maker.first(receipts, "receipt")
  }
}

/** A session with all its answers. */
const makeSession = async (maker: Maker) => {
  const session = await maker.create("POST", "/sessions", "<answer continue=\"true\">yes</answer>")
  const answer = async (step: string, text: string) => {
    await maker.make("PUT", `${session}/${step}`, `<answer>${text}</answer>`)
    return `${session}/${step}`
  }
  return {
    "/sessions/{session}": session,
    "/sessions/{session}/name": await answer("name", "Robin"),
    "/sessions/{session}/quest": await answer("quest", "Grail"),
    "/sessions/{session}/hard_question": await answer("hard_question", "Assur")
  }
}

/** An account at which a browser is signed in. */
const makeAccount = async (maker: Maker) => {
  const made = await maker.make("POST", "/accounts", "<account><name>suite</name></account>")
  const account = locationOf(made)
  const tokens = `${account}/tokens`
  const browsers = `${account}/browser-sessions`
  const token = /<token [^>]*>([^<]+)</.exec(textOf(made))?.[1] ?? ""
  const form = new URLSearchParams({ account: "suite", token }).toString()
  await maker.make("POST", "/sign-in", form, "application/x-www-form-urlencoded")
  return {
    "/accounts/{account}": account,
    "/accounts/{account}/tokens": tokens,
    "/accounts/{account}/tokens/{token}": await maker.first(tokens, "token"),
    "/accounts/{account}/export": `${account}/export`,
    "/accounts/{account}/browser-sessions": browsers,
    "/accounts/{account}/browser-sessions/{browserSession}": await maker.first(
      browsers,
      "browser-session"
    )
  }
}

/** Rows of the tables, and a query of them. */
const makeRows = async (maker: Maker) => {
  const customer = "<customer id=\"suite\"><name>Neo</name><age>37</age></customer>"
  const query = "<query on=\"customers\"><where field=\"age\" op=\"ge\" value=\"21\"/></query>"
  const quote = "<quote><price currency=\"USD\">1.50</price></quote>"
  return {
    "/quotes/{symbol}": await maker.create("PUT", "/quotes/SUITE", quote),
    "/customers/{customer}": await maker.create("PUT", "/customers/suite", customer),
    "/loads/{load}": await maker.create("PUT", "/customers", `<customers>${customer}</customers>`),
    "/queries/{query}": await maker.create("POST", "/queries", query)
  }
}

/** Makes one resource of each kind. */
export const makeResources = async (recorder: Recorder): Promise<Examples> => {
  const maker = new Maker(recorder)
  const to = notification.replace("<item>", `<to>${nowhere}</to><item>`)
  const sent = await maker.create("POST", "/outgoing/admin", to)
  return {
    ...await makeMailbox(maker),
    ...await makeContent(maker),
    ...await makeSession(maker),
    ...await makeAccount(maker),
    ...await makeRows(maker),
    "/outgoing/{account}": "/outgoing/admin",
    "/outgoing/{account}/pauses": "/outgoing/admin/pauses",
    "/outgoing/{account}/{notification}": sent,
    "/outgoing/{account}/{notification}/attempts": `${sent}/attempts`,
    "/problems/{slug}": "/problems/not-found",
    "/fonts/{file}": typefacePath,
    "/docs/{page}": "/docs/quick-start",
    "/docs/how-to/{page}": "/docs/how-to/recipes",
    "/docs/modules/{page}": "/docs/modules/http",
    "/docs/pictures/{file}": "/docs/pictures/mailbox.webp",
    "/docs/reference/{page}": "/docs/reference/settings",
    "/docs/api/{resource}": "/docs/api/mailboxes",
    "/cluster/actors/{kind}": "/cluster/actors/account",
    "/cluster/actors/{kind}/{id}": "/cluster/actors/account/admin",
    // No actor is in quarantine: 404.
    "/cluster/quarantine/{kind}/{id}": "/cluster/quarantine/mailbox/suite"
  }
}

/** The parts of `/openapi.json` that tell what can be requested. */
export interface Paths {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

interface Described {
  readonly responses?: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, unknown>> }>
  >
}

/** A recorded exchange, and what it stands for. */
export interface Labeled {
  readonly label: string
  readonly exchange: Exchange
}

/** Matches the paths of a template such as `/mailboxes/{mailbox}`. */
const patternOf = (template: string): RegExp =>
  new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`)

/** The template of a path of the document. */
export const templateOf = ({ paths }: Paths, path: string): string =>
  Object.keys(paths).find((template) => patternOf(template).test(path)) ?? path

const parametersOf: Readonly<Record<string, string>> = {
  "/questions/quest_question": "?name=Robin",
  "/questions/hard_question": "?name=Robin&quest=Grail"
}

const typesOf = (operation: Described | undefined): ReadonlyArray<string> =>
  Object.keys(operation?.responses?.["200"]?.content ?? {})
    // A stream does not end.
    .filter((type) => type !== "*/*" && type !== "text/event-stream")

/** Requests one path by every method that changes nothing, and with faults. */
const requestPath = async (
  recorder: Recorder,
  template: string,
  path: string,
  operations: Readonly<Record<string, Described>>
): Promise<ReadonlyArray<Labeled>> => {
  const got: Array<Labeled> = []
  const request = async (method: string, how: string, options: RequestOptions = {}) => {
    const exchange = await recorder.send(method, path, options)
    got.push({ label: `${method} ${template}${how === "" ? "" : `, ${how}`}`, exchange })
    return exchange
  }
  await request("OPTIONS", "")
  const preflight = { Origin: "http://example.org", "Access-Control-Request-Method": "GET" }
  await request("OPTIONS", "preflight", { headers: preflight, isAnonymous: true })
  await request("PATCH", "no such method", { body: "<a/>" })
  if (operations["post"] !== undefined) {
    await request("POST", "unknown type", { body: "?", headers: { "Content-Type": "image/x-no" } })
    await request("POST", "malformed", { body: "<" })
  }
  if (operations["get"] === undefined) return got
  const plain = await request("GET", "")
  await request("HEAD", "")
  await request("GET", "anonymous", { isAnonymous: true })
  for (const Accept of typesOf(operations["get"])) {
    await request("GET", Accept, { headers: { Accept } })
  }
  await request("GET", "unknown Accept", { headers: { Accept: "image/x-no" } })
  const tag = fieldOf(plain, "etag")
  if (tag !== "") {
    await request("GET", "not modified", { headers: { "If-None-Match": tag } })
    await request("GET", "precondition failed", { headers: { "If-Match": "\"other\"" } })
    await request("GET", "range", { headers: { Range: "bytes=0-1" } })
    await request("GET", "wrong range", { headers: { Range: "bytes=99999999-" } })
  }
  return got
}

/** The path of a template's example; of an action, below the resource on which it acts. */
const exampleOf = (
  { paths }: Paths,
  examples: Readonly<Record<string, string>>,
  template: string
): string | undefined => {
  const own = template.includes("{") ? examples[template] : template
  if (own !== undefined || paths[template]?.["get"] !== undefined) return own
  const slash = template.lastIndexOf("/")
  const parent = examples[template.slice(0, slash)]
  return parent === undefined ? undefined : parent + template.slice(slash)
}

/** The templates of the document of which no example is made. */
export const withoutExample = (document: Paths): ReadonlyArray<string> => {
  const examples = Object.fromEntries(exampleTemplates.map((template) => [template, template]))
  return Object.keys(document.paths).filter((template) =>
    exampleOf(document, examples, template) === undefined
  )
}

/** Requests every path of the document; a path without an example fails. */
export const requestAll = async (
  recorder: Recorder,
  document: Paths,
  examples: Examples
): Promise<ReadonlyArray<Labeled>> => {
  const got: Array<Labeled> = []
  for (const [template, operations] of Object.entries(document.paths)) {
    const path = exampleOf(document, examples, template)
    if (path === undefined) throw new Error(`no example of ${template}`)
    const target = `${path}${parametersOf[template] ?? ""}`
    got.push(...await requestPath(recorder, template, target, operations))
  }
  return got
}

/** Deletes the resources that can be deleted, and reads what was there. */
export const deleteAll = async (
  recorder: Recorder,
  { paths }: Paths,
  examples: Examples
): Promise<ReadonlyArray<Labeled>> => {
  const got: Array<Labeled> = []
  const made: Readonly<Record<string, string>> = examples
  // Children first: the document lists parents first.
  for (const [template, operations] of Object.entries(paths).toReversed()) {
    const path = made[template]
    if (operations["delete"] === undefined || path === undefined) continue
    got.push(
      { label: `DELETE ${template}`, exchange: await recorder.send("DELETE", path) },
      { label: `GET ${template}, deleted`, exchange: await recorder.send("GET", path) }
    )
  }
  return got
}
