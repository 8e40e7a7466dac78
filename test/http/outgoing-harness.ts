/** A service with outgoing mailboxes, and receivers of other services on loopback. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { childrenOf, type Element } from "../../http/formats/xml/index.ts"
import { adminToken, type Answered, type Harness, type Sending } from "./harness.ts"
import { startLosing } from "./lost-replies.ts"
import type { TestSettings } from "./nodes.ts"

export const admin = `admin:${adminToken}`

/** A request that a receiver got. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/**
 * A receiver that answers with the status in its path: `/410/…`. A 503 has a Retry-After of one
 * hour. `/inbox/…` accepts JSON-LD only (Linked Data Notifications). A path that ends in `/long`
 * gets a Location of 1,100 characters.
 */
export interface Receiver {
  readonly base: string
  readonly received: ReadonlyArray<Received>
  /** From now on answers with this status for every path. */
  readonly answer: (status: number) => void
  readonly close: () => Promise<void>
}

const linkedData = "application/ld+json"

const fieldsOf = (status: number, path: string): Record<string, string> => {
  if (status === 202) {
    return { Location: path.endsWith("/long") ? path.padEnd(1_100, "x") : `${path}/stored` }
  }
  if (status === 415) return { "Accept-Post": linkedData }
  return status === 503 ? { "Retry-After": "3600" } : {}
}

export const startReceiver = async (): Promise<Receiver> => {
  const received: Array<Received> = []
  let chosen: number | undefined
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (text: string) => {
      body += text
    })
    request.on("end", () => {
      const path = request.url ?? ""
      received.push({ path, headers: request.headers, body })
      const isRefused = path.startsWith("/inbox/") && request.headers["content-type"] !== linkedData
      const asked = isRefused ? 415 : Number(/^\/(\d{3})\b/.exec(path)?.[1] ?? 202)
      const status = chosen ?? asked
      response.writeHead(status, fieldsOf(status, path))
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // The address of a TCP server is an object.
  const { port } = server.address() as AddressInfo
  return {
    base: `http://127.0.0.1:${port}`,
    received,
    answer: (status) => {
      chosen = status
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

export interface OutgoingHarness extends Harness {
  /** Creates an account; returns its credentials. */
  readonly account: (name: string) => Promise<string>
  /** Sends a notification to these recipients (A5). */
  readonly post: (
    basic: string,
    to: ReadonlyArray<string>,
    options?: Sending
  ) => Promise<Answered>
  /** Polls until the notification has this status, or is gone. */
  readonly until: (href: string, basic: string, status: string) => Promise<Answered>
}

/** A notification to these recipients. */
export const outgoing = (to: ReadonlyArray<string>, description = "d"): string =>
  `<notification>${to.map((uri) => `<to>${uri}</to>`).join("")}<item><description>${description}` +
  "</description><url>http://example.org/m</url></item></notification>"

export const recipients = (answer: Answered): ReadonlyArray<Element> =>
  childrenOf(answer.xml, "recipient")

/** An attribute of each recipient. */
export const each = (answer: Answered, attribute: string): ReadonlyArray<string | undefined> =>
  recipients(answer).map(({ attributes }) => attributes[attribute])

export const pathOf = (basic: string): string => `/outgoing/${basic.split(":")[0]}`

export const startOutgoing = async (settings: TestSettings = {}): Promise<OutgoingHarness> => {
  const service = await startLosing(settings)
  return {
    ...service,
    account: async (name) => {
      const created = await service.send("POST", "/accounts", {
        basic: admin,
        body: `<account><name>${name}</name></account>`
      })
      return `${name}:${created.child("token")}`
    },
    post: (basic, to, options = {}) =>
      service.send("POST", pathOf(basic), { basic, body: outgoing(to), ...options }),
    until: async (href, basic, status) => {
      for (;;) {
        const got = await service.send("GET", href, { basic })
        if (got.status !== 200 || got.xml.attributes["status"] === status) return got
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
  }
}
