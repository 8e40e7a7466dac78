/** A service with mailboxes and registrations, and a subscriber of another service on loopback. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { childOf, childrenOf, type Element, parseText } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import type { Answered, Sending } from "./harness.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"
import type { TestSettings } from "./nodes.ts"

/** A request that a callback got. */
export interface Received {
  readonly method: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** How a callback answers a challenge and a push. */
export type Manner =
  /** Echoes, and acknowledges. */
  | "echo"
  /** Answers 200 with something else. */
  | "mute"
  /** Answers 404. */
  | "refuse"
  /** Answers a challenge with a redirect to a URI that echoes it. */
  | "moved"
  /** Answers a challenge with 503. */
  | "busy"
  /** Echoes challenges of `subscribe` only. */
  | "stay"
  /** Echoes, and answers pushes with 410. */
  | "gone"
  /** Echoes, and answers pushes with 503 and a Retry-After of one hour. */
  | "later"

export interface Subscriber {
  /** A new callback. */
  readonly at: (manner: Manner) => string
  /** The challenges that a callback got, and the pushes. */
  readonly challenges: (callback: string) => ReadonlyArray<Received>
  readonly pushes: (callback: string) => ReadonlyArray<Received>
  /** From now on the callback answers in another manner. */
  readonly change: (callback: string, manner: Manner) => void
  /**
   * The callback answers no challenge until the function that this returns is called; with the
   * method POST no push.
   */
  readonly hold: (callback: string, method?: "GET" | "POST") => () => void
  readonly close: () => Promise<void>
}

/** The status and body of a callback's answer. */
const answerOf = (manner: string, { method, query }: Received): [number, string] => {
  if (method === "POST") return [manner === "gone" ? 410 : manner === "later" ? 503 : 204, ""]
  if (manner === "refuse") return [404, ""]
  if (manner === "busy") return [503, query.get("hub.challenge") ?? ""]
  if (manner === "moved") return [302, ""]
  const isEchoed = manner !== "mute" &&
    (manner !== "stay" || query.get("hub.mode") === "subscribe")
  return [200, isEchoed ? query.get("hub.challenge") ?? "" : "hello"]
}

export const startSubscriber = async (): Promise<Subscriber> => {
  const received = new Map<string, Array<Received>>()
  const manners = new Map<string, Manner>()
  const held = new Map<string, Promise<void>>()
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (text: string) => {
      body += text
    })
    request.on("end", () => {
      const [path = "", query = ""] = (request.url ?? "").split("?")
      const one: Received = {
        method: request.method ?? "",
        query: new URLSearchParams(query),
        headers: request.headers,
        body
      }
      received.set(path, [...received.get(path) ?? [], one])
      const [status, text] = answerOf(manners.get(path) ?? path.split("/")[1] ?? "", one)
      const moved = status === 302 ? { Location: `/echo/moved?${query}` } : {}
      const later = status === 503 && one.method === "POST" ? { "Retry-After": "3600" } : {}
      const answer = () =>
        void response.writeHead(status, { "Content-Type": "text/plain", ...moved, ...later }).end(
          text
        )
      const release = held.get(`${one.method} ${path}`)
      if (release === undefined) answer()
      else void release.then(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // The address of a TCP server is an object.
  const { port } = server.address() as AddressInfo
  const of = (method: string) => (callback: string) =>
    (received.get(new URL(callback).pathname) ?? []).filter((one) => one.method === method)
  let created = 0
  return {
    at: (manner) => `http://127.0.0.1:${port}/${manner}/${++created}`,
    challenges: of("GET"),
    pushes: of("POST"),
    change: (callback, manner) => void manners.set(new URL(callback).pathname, manner),
    hold: (callback, method = "GET") => {
      let release = () => {}
      const { pathname } = new URL(callback)
      held.set(`${method} ${pathname}`, new Promise((resolve) => release = resolve))
      return release
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

export interface Registrations extends Mailboxes {
  /** The owner registers a callback at a mailbox. */
  readonly register: (mailbox: string, callback: string, options?: Sending) => Promise<Answered>
  /** The owner sends a WebSub request to a mailbox, which is also the default topic. */
  readonly hub: (mailbox: string, fields: Readonly<Record<string, string>>) => Promise<Answered>
  /** Polls as the owner until the answer satisfies the condition. */
  readonly until: (
    href: string,
    isDone: (answer: Answered) => boolean
  ) => Promise<Answered>
}

export const registration = (callback: string): string =>
  `<registration><callback>${callback}</callback></registration>`

export const formType = "application/x-www-form-urlencoded"

/** Polls until the result satisfies the condition. */
export const eventually = async <A>(read: () => Promise<A> | A, isDone: (found: A) => boolean) => {
  for (;;) {
    const found = await read()
    if (isDone(found)) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export const statusOf = ({ xml }: Answered): string | undefined => xml.attributes["status"]

export const isActive = (answer: Answered): boolean =>
  answer.status === 200 && statusOf(answer) === "active"

export const startRegistrations = async (
  changed: (service: Service) => Service = (service) => service,
  settings: TestSettings = {}
): Promise<Registrations> => {
  const service = await startMailboxes(changed, settings)
  return {
    ...service,
    register: (mailbox, callback, options = {}) =>
      service.send("POST", `${mailbox}/registrations`, {
        basic: owner,
        body: registration(callback),
        ...options
      }),
    hub: (mailbox, fields) =>
      service.send("POST", `${mailbox}/registrations`, {
        basic: owner,
        type: formType,
        body: new URLSearchParams({ "hub.topic": mailbox, ...fields }).toString()
      }),
    until: (href, isDone) => eventually(() => service.send("GET", href, { basic: owner }), isDone)
  }
}

/** The document of a push. */
export const changedOf = ({ body }: Received): Element => {
  const parsed = parseText(body)
  if (!parsed.ok) throw new Error(`${parsed.fault.detail}: ${body}`)
  return parsed.value
}

/** The URIs of the notifications in pushes, in their order. */
export const broughtBy = (pushes: ReadonlyArray<Received>): ReadonlyArray<string | undefined> =>
  pushes.flatMap((push) =>
    childrenOf(changedOf(push), "notification")
      .filter((one) => childOf(one, "item") !== undefined)
      .map(({ attributes }) => attributes["href"])
  )
