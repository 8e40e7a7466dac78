/**
 * A subscriber written from the W3C Recommendation WebSub (2018-01-23): discovery (§4), subscribing
 * (§5), content distribution (§7). It uses nothing of the service.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** The links of a topic. */
export interface Discovered {
  readonly hub: string
  readonly topic: string
  readonly contentType: string
}

/** Content that the hub has distributed. */
export interface Distributed {
  readonly contentType: string
  readonly links: string
  readonly body: string
  /** Whether it has a valid signature; undefined for a subscription without a secret. */
  readonly isAuthentic: boolean | undefined
}

type Mode = "subscribe" | "unsubscribe"

/** A subscription, by its callback. */
export interface Subscription {
  readonly callback: string
  readonly topic: string
  readonly hub: string
  secret: string | undefined
  /** What the subscriber has asked for and has not seen verified. */
  pending: Mode | undefined
  /** Until when the hub promises content, in seconds; set by the last verification. */
  leaseSeconds: number | undefined
  state: "requested" | "active" | "denied" | "ended"
  reason: string | undefined
  readonly content: Array<Distributed>
  /** How the callback answers content. */
  contentStatus: number
}

/** The methods of signatures that a subscriber recognizes (§7.1). */
const methods: ReadonlyArray<string> = ["sha1", "sha256", "sha384", "sha512"]

const relationsIn = (field: string): ReadonlyArray<readonly [rel: string, href: string]> =>
  [...field.matchAll(/<([^>]*)>([^<]*)/g)].flatMap(([, href = "", parameters = ""]) => {
    const [, quoted, plain] = /;\s*rel="?(?:([^"]*)"|([^;,\s"]*))/i.exec(parameters) ?? []
    const rel = quoted ?? plain ?? ""
    return rel.split(/\s+/).map((one): readonly [string, string] => [one.toLowerCase(), href])
  })

/** The first link of a relation: of the header, else of an element `link` (§4). */
const linkIn = (response: Response, body: string, rel: string): string => {
  const fields = relationsIn(response.headers.get("link") ?? "")
  const found = fields.find(([one]) => one === rel)?.[1]
  if (found !== undefined) return new URL(found, response.url).href
  const elements = body.match(/<(?:atom:)?link\b[^>]*>/g) ?? []
  const element = elements.find((one) => new RegExp(`rel="${rel}"`).test(one))
  const href = /href="([^"]*)"/.exec(element ?? "")?.[1]
  if (href === undefined) throw new Error(`${response.url} has no link ${rel}`)
  return new URL(href.replaceAll("&amp;", "&"), response.url).href
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer) // a stream of bytes
  return Buffer.concat(chunks)
}

const isSigned = (field: string, secret: string, body: Buffer): boolean => {
  const [method = "", hex = ""] = field.split("=")
  if (!methods.includes(method)) return false
  const expected = createHmac(method, secret).update(body).digest()
  const given = Buffer.from(hex, "hex")
  return given.length === expected.length && timingSafeEqual(given, expected)
}

export class WebSubSubscriber {
  private readonly server = createServer((request, response) => {
    this.take(request, response).catch(() => response.destroy())
  })
  private readonly subscriptions = new Map<string, Subscription>()
  private readonly authorization: string
  private origin = ""

  constructor(credentials: string) {
    this.authorization = `Basic ${Buffer.from(credentials).toString("base64")}`
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve))
    // The address of a TCP server is an object.
    this.origin = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.closeAllConnections()
      this.server.close(() => resolve())
    })
  }

  /** §4: requests a topic, and reads its links. */
  async discover(uri: string): Promise<Discovered> {
    const { authorization } = this
    const response = await fetch(uri, { headers: { authorization } })
    if (!response.ok) throw new Error(`${uri} answers ${response.status}`)
    const body = await response.text()
    return {
      hub: linkIn(response, body, "hub"),
      topic: linkIn(response, body, "self"),
      contentType: response.headers.get("content-type") ?? ""
    }
  }

  /** §5.1, with a callback that nobody can guess, one for each topic. */
  async subscribe(
    { hub, topic }: Pick<Discovered, "hub" | "topic">,
    options: { readonly secret?: string; readonly leaseSeconds?: number } = {}
  ): Promise<Subscription> {
    const callback = `${this.origin}/${randomBytes(16).toString("hex")}?kept=1`
    const subscription: Subscription = {
      callback,
      topic,
      hub,
      secret: options.secret,
      pending: "subscribe",
      leaseSeconds: undefined,
      state: "requested",
      reason: undefined,
      content: [],
      contentStatus: 204
    }
    this.subscriptions.set(new URL(callback).pathname, subscription)
    await this.request(subscription, "subscribe", options)
    return subscription
  }

  /** Subscribes again; the new secret counts when the hub has verified the request. */
  async renew(
    subscription: Subscription,
    options: { readonly secret?: string; readonly leaseSeconds?: number }
  ): Promise<void> {
    subscription.pending = "subscribe"
    subscription.leaseSeconds = undefined
    subscription.secret = options.secret
    await this.request(subscription, "subscribe", options)
  }

  async unsubscribe(subscription: Subscription): Promise<void> {
    subscription.pending = "unsubscribe"
    await this.request(subscription, "unsubscribe", {})
  }

  private async request(
    { callback, hub, topic }: Subscription,
    mode: Mode,
    { leaseSeconds, secret }: { readonly secret?: string; readonly leaseSeconds?: number }
  ): Promise<void> {
    const body = new URLSearchParams({
      "hub.callback": callback,
      "hub.mode": mode,
      "hub.topic": topic,
      ...leaseSeconds === undefined ? {} : { "hub.lease_seconds": String(leaseSeconds) },
      ...secret === undefined ? {} : { "hub.secret": secret }
    })
    const { authorization } = this
    const response = await fetch(hub, { method: "POST", headers: { authorization }, body })
    // §5.1.2: 202, or an error that the body describes.
    if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`)
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", this.origin)
    const subscription = this.subscriptions.get(pathname)
    // The hub must keep the query of the callback.
    if (subscription === undefined || searchParams.get("kept") !== "1") {
      response.writeHead(404).end()
    } else if (request.method === "GET") this.answerIntent(subscription, searchParams, response)
    else if (request.method === "POST") await this.takeContent(subscription, request, response)
    else response.writeHead(405).end()
  }

  /** §5.2 and §5.3. */
  private answerIntent(
    subscription: Subscription,
    query: URLSearchParams,
    response: ServerResponse
  ): void {
    const mode = query.get("hub.mode")
    const challenge = query.get("hub.challenge")
    if (query.get("hub.topic") !== subscription.topic) return void response.writeHead(404).end()
    if (mode === "denied") {
      subscription.state = "denied"
      subscription.reason = query.get("hub.reason") ?? undefined
      return void response.writeHead(200).end()
    }
    if (challenge === null || mode !== subscription.pending) {
      return void response.writeHead(404).end()
    }
    if (mode === "subscribe") {
      const lease = query.get("hub.lease_seconds") ?? ""
      if (!/^[1-9]\d*$/.test(lease)) return void response.writeHead(400).end()
      subscription.leaseSeconds = Number(lease)
    }
    subscription.state = mode === "subscribe" ? "active" : "ended"
    subscription.pending = undefined
    response.writeHead(200, { "Content-Type": "text/plain" }).end(challenge)
  }

  /** §7 and §7.1: content with a wrong signature is acknowledged, and not used. */
  private async takeContent(
    subscription: Subscription,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<void> {
    const body = await bodyOf(request)
    const { secret } = subscription
    const field = request.headers["x-hub-signature"]
    const signature = typeof field === "string" ? field : ""
    subscription.content.push({
      contentType: request.headers["content-type"] ?? "",
      links: String(request.headers.link ?? ""),
      body: body.toString(),
      isAuthentic: secret === undefined ? undefined : isSigned(signature, secret, body)
    })
    response.writeHead(subscription.contentStatus).end()
  }
}

/** The links of content, by relation. */
export const linksOf = ({ links }: Distributed): Readonly<Record<string, string>> =>
  Object.fromEntries(relationsIn(links))
