/** Makes one resource of each kind, and requests every path of `/openapi.json` in several ways. */
import { type Exchange, fieldOf, type Recorder, type RequestOptions } from "./exchanges.ts"

const notification = "<notification><item><description>d</description><url>http://example.org/m" +
  "</url></item></notification>"

/** Takes no connection (RFC 5737). */
const nowhere = "http://192.0.2.1/"

const textOf = ({ content }: Exchange): string => Buffer.from(content, "base64").toString("utf8")

const pathOf = (uri: string, base: string): string => new URL(uri, base).pathname

const maker = (recorder: Recorder) => async (method: string, path: string, body: string) => {
  const made = await recorder.send(method, path, { body })
  if (made.status >= 400) throw new Error(`${method} ${path} is ${made.status}: ${textOf(made)}`)
  return made
}

const locationOf = (made: Exchange): string =>
  pathOf(fieldOf(made, "location") || made.uri, made.uri)

/** Makes one resource of each kind; returns their paths. */
export const makeResources = async (recorder: Recorder): Promise<ReadonlyArray<string>> => {
  const make = maker(recorder)
  const create = async (method: string, path: string, body: string) =>
    locationOf(await make(method, path, body))
  const mailbox = await create("POST", "/mailboxes", "<mailbox><name>suite</name></mailbox>")
  const deposited = await create("POST", mailbox, notification)
  const to = notification.replace("<item>", `<to>${nowhere}</to><item>`)
  const registered = `<registration><callback>${nowhere}</callback></registration>`
  const customer = "<customer id=\"suite\"><name>Neo</name><age>37</age></customer>"
  const query = "<query on=\"customers\"><where field=\"age\" op=\"ge\" value=\"21\"/></query>"
  const session = await create("POST", "/sessions", "<answer continue=\"true\">yes</answer>")
  const answers = [["name", "Robin"], ["quest", "Grail"], ["hard_question", "Assur"]] as const
  for (const [step, text] of answers) {
    await make("PUT", `${session}/${step}`, `<answer>${text}</answer>`)
  }
  const published = await make("POST", "/content", "<a>Content of the suites.</a>")
  const edit = pathOf(/<([^>]+)>; rel="edit"/.exec(fieldOf(published, "link"))?.[1] ?? "", nowhere)
  const receipt = "<receipt status=\"received\"/>"
  const receipts = `${edit}/receipts`
  await make("POST", locationOf(published), receipt)
  const received = await recorder.send("GET", receipts)
  const account = await create("POST", "/accounts", "<account><name>suite</name></account>")
  const tokens = await recorder.send("GET", `${account}/tokens`)
  const child = (listing: Exchange) =>
    pathOf(/<(?:token|receipt) href="([^"]+)"/.exec(textOf(listing))?.[1] ?? "", listing.uri)
  return [
    mailbox,
    deposited,
    locationOf(published),
    receipts,
    child(received),
    session,
    ...answers.map(([step]) => `${session}/${step}`),
    account,
    `${account}/tokens`,
    child(tokens),
    "/outgoing/admin",
    await create("POST", "/outgoing/admin", to),
    await create("POST", "/cabinets", `<cabinet><mailbox href="${mailbox}"/></cabinet>`),
    `${mailbox}/registrations`,
    await create("POST", `${mailbox}/registrations`, registered),
    await create("PUT", "/quotes/SUITE", "<quote><price currency=\"USD\">1.50</price></quote>"),
    await create("PUT", "/customers/suite", customer),
    locationOf(await make("PUT", "/customers", `<customers>${customer}</customers>`)),
    await create("POST", "/queries", query),
    "/problems/not-found",
    // No actor is in quarantine: 404.
    "/cluster/quarantine/mailbox/suite"
  ]
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

/** Requests every path of the document; a path without an example fails. */
export const requestAll = async (
  recorder: Recorder,
  { paths }: Paths,
  examples: ReadonlyArray<string>
): Promise<ReadonlyArray<Labeled>> => {
  const got: Array<Labeled> = []
  for (const [template, operations] of Object.entries(paths)) {
    const isAction = operations["get"] === undefined
    const of = (pattern: string) => examples.find((path) => patternOf(pattern).test(path))
    const action = template.slice(template.lastIndexOf("/"))
    const path = !template.includes("{") || !isAction
      ? of(template) ?? template
      : `${of(template.slice(0, template.lastIndexOf("/")))}${action}`
    if (/[{]|^undefined/.test(path)) throw new Error(`no example of ${template}`)
    const target = `${path}${parametersOf[template] ?? ""}`
    got.push(...await requestPath(recorder, template, target, operations))
  }
  return got
}

/** Deletes the resources that can be deleted, and reads what was there. */
export const deleteAll = async (
  recorder: Recorder,
  { paths }: Paths,
  examples: ReadonlyArray<string>
): Promise<ReadonlyArray<Labeled>> => {
  const got: Array<Labeled> = []
  // Children first: the document lists parents first.
  for (const [template, operations] of Object.entries(paths).toReversed()) {
    const path = examples.find((one) => patternOf(template).test(one))
    if (operations["delete"] === undefined || path === undefined) continue
    got.push(
      { label: `DELETE ${template}`, exchange: await recorder.send("DELETE", path) },
      { label: `GET ${template}, deleted`, exchange: await recorder.send("GET", path) }
    )
  }
  return got
}
