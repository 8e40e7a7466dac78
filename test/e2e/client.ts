/** The requests of the tests, and their responses, whose XML is parsed. */
import { createHash } from "node:crypto"
import { type Element as Parsed, xml2js } from "xml-js"
import { adminToken, publicUrl } from "./process.ts"

/** An XML element. */
export interface Node {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: ReadonlyArray<Node>
  readonly text: string
}

const nodeOf = (parsed: Parsed): Node => {
  const inside = parsed.elements ?? []
  const attributes = Object.entries(parsed.attributes ?? {})
  return {
    name: parsed.name ?? "",
    attributes: Object.fromEntries(attributes.map(([name, value]) => [name, String(value)])),
    children: inside.filter(({ type }) => type === "element").map(nodeOf),
    text: inside.map(({ text, type }) => type === "text" ? String(text) : "").join("")
  }
}

/** The root element of a document; throws when it is not well-formed. */
export const parseXml = (text: string): Node => {
  // Without the option `compact`, xml2js returns this type.
  const { elements = [] } = xml2js(text, { compact: false }) as Parsed
  const found = elements.find(({ type }) => type === "element")
  if (found === undefined) throw new Error(`no element in ${text.slice(0, 200)}`)
  return nodeOf(found)
}

export const childOf = (node: Node, name: string): Node => {
  const found = node.children.find((child) => child.name === name)
  if (found === undefined) throw new Error(`${node.name} has no ${name}`)
  return found
}

/** A complete response. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
}

export const sha256 = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex")

export const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`

export const asAdmin = { authorization: basic("admin", adminToken) }

/** Path and query of a URI of the service. */
export const pathOf = (uri: string | null): string => {
  if (uri === null) throw new Error("there is no URI")
  return uri.startsWith(publicUrl) ? uri.slice(publicUrl.length) : uri
}

/** Path of the response's link with this relation. */
export const linkOf = (answer: Answer, rel: string): string => {
  const link = new RegExp(`<([^>]*)>; rel="?${rel}"?`).exec(answer.headers.get("link") ?? "")
  return pathOf(link?.[1] ?? null)
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  readonly timeoutMs?: number
}

const answerWithinMs = 120_000

/** Sends one request. Rejects without a complete response: the outcome is then indeterminate. */
export const send = async (
  base: string,
  path: string,
  options: RequestOptions = {}
): Promise<Answer> => {
  const response = await fetch(`${base}${path}`, {
    method: options.method ?? "GET",
    headers: { ...options.headers },
    // These buffers are not shared, which their type does not express.
    ...options.body === undefined ? {} : { body: options.body as Uint8Array<ArrayBuffer> | string },
    redirect: "manual",
    signal: AbortSignal.timeout(options.timeoutMs ?? answerWithinMs)
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString() }
}

const xml = { "content-type": "application/xml" }

export const postXml = (
  base: string,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {}
): Promise<Answer> => send(base, path, { method: "POST", body, headers: { ...xml, ...headers } })

export const putXml = (
  base: string,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {}
): Promise<Answer> => send(base, path, { method: "PUT", body, headers: { ...xml, ...headers } })

/** Fails with the response's text unless it has one of the statuses. */
export const expectStatus = (answer: Answer, ...statuses: ReadonlyArray<number>): Answer => {
  if (statuses.includes(answer.status)) return answer
  throw new Error(
    `${answer.status} instead of ${statuses.join(" or ")}: ${answer.text.slice(0, 1000)}`
  )
}

/** The smallest notification document with this description. */
export const notification = (description: string): string =>
  `<notification><item><description>${description}</description>` +
  `<url>http://sender.test/${description}</url></item></notification>`

/** A mailbox with the secrets that the service shows only once. */
export interface Mailbox {
  readonly path: string
  readonly password: string
  readonly shared: string
}

/** Parses the response of A9. */
export const mailboxOf = (created: Answer): Mailbox => {
  const document = parseXml(created.text)
  return {
    path: pathOf(created.headers.get("location")),
    password: childOf(document, "password").text,
    shared: pathOf(childOf(document, "shared").attributes["href"] ?? null)
  }
}

/** Creates a mailbox. A failure has the audit log, which tells who has made one of this name. */
export const openMailbox = async (base: string, name: string): Promise<Mailbox> => {
  const document = `<mailbox><name>${name}</name></mailbox>`
  const created = await postXml(base, "/mailboxes", document, asAdmin)
  if (created.status === 201) return mailboxOf(created)
  const audit = await send(base, "/audit", { headers: { ...asAdmin, accept: "application/json" } })
  throw new Error(`${base}: ${created.status} instead of 201: ${created.text}\n${audit.text}`)
}

/** One notification of a listing. */
export interface Listed {
  readonly path: string
  readonly description: string
  readonly url: string
}

const nextOf = (link: string | null): string | undefined => {
  const found = (link ?? "").match(/<([^>]*)>\s*;[^,]*rel="?next"?/)
  return found === null ? undefined : pathOf(found[1] ?? null)
}

/** Everything in a mailbox, oldest first. Fails for a page that is not complete XML. */
export const listMailbox = async (base: string, mailbox: Mailbox): Promise<Array<Listed>> => {
  const headers = { authorization: basic("reader", mailbox.password) }
  const all: Array<Listed> = []
  let path: string | undefined = `${mailbox.path}?limit=1000`
  while (path !== undefined) {
    const page: Answer = expectStatus(await send(base, path, { headers }), 200)
    for (const entry of parseXml(page.text).children) {
      if (entry.name !== "notification") continue
      const item = childOf(entry, "item")
      all.push({
        path: pathOf(entry.attributes["href"] ?? null),
        description: childOf(item, "description").text,
        url: childOf(item, "url").text
      })
    }
    path = nextOf(page.headers.get("link"))
  }
  return all
}

/** The value of a metric; the sum over all its labels. */
export const metricValue = async (base: string, name: string): Promise<number> => {
  const { text } = expectStatus(await send(base, "/metrics"), 200)
  const lines = text.split("\n").filter((line) => line.startsWith(name) && !line.startsWith("#"))
  if (lines.length === 0) throw new Error(`/metrics has no ${name}`)
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0)
}
