/**
 * The load of a soak: deposits, reads, removals, content, relays, pushes and sessions. The load
 * later removes what it created, so the amount of live data is bounded.
 */
import { randomBytes } from "node:crypto"
import { Agent } from "undici"
import { asAdmin, basic, listMailbox, type Mailbox, notification, openMailbox,
  pathOf } from "../../e2e/client.ts"
import { echoes, receiver } from "../../e2e/receivers.ts"

const MAILBOXES = 20
const MAILBOX_NOTIFICATIONS_MAX = 200
const CONTENTS_MAX = 60
const RELAYS_MAX = 100
const PAGE = 50
const CONNECTIONS = 64
const ANSWER_MS = 60_000
const xml = { "content-type": "application/xml" }

interface Box {
  readonly mailbox: Mailbox
  /** Descriptions and paths, oldest first. */
  readonly notifications: Array<readonly [string, string]>
}

interface Made {
  readonly path: string
  readonly bytes: number
}

interface Answered {
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly location: string
}

/** Weights of the operations, of a hundred. */
const weights = { deposit: 38, remove: 30, read: 20, content: 4, relay: 4, session: 4 } as const
type Kind = keyof typeof weights

const description = `${"x".repeat(900)}-`

export class Load {
  readonly boxes: Array<Box> = []
  /** Descriptions of failures. */
  readonly wrong: Array<string> = []
  operations = 0
  pushes = 0
  private readonly base: string
  private readonly agent = new Agent({ connections: CONNECTIONS, pipelining: 1 })
  private readonly contents: Array<Made> = []
  private readonly relays: Array<Made> = []
  private origin = ""
  private count = 0

  constructor(base: string) {
    this.base = base
  }

  async prepare(): Promise<void> {
    this.origin = await receiver((received, response) => {
      if (echoes(received, response)) return
      if (received.path === "/push") this.pushes++
      response.writeHead(202, { Location: "/stored" }).end()
    })
    for (let n = 0; n < MAILBOXES; n++) {
      this.boxes.push({ mailbox: await openMailbox(this.base, `soak${n}`), notifications: [] })
    }
    const [box] = this.boxes
    const document = `<registration><callback>${this.origin}/push</callback></registration>`
    await this.request("POST", `${box?.mailbox.path}/registrations`, document, {
      ...asAdmin,
      ...xml
    })
  }

  /** Approximate bytes of live data; the markers of removed data are small. */
  get liveBytes(): number {
    const deposits = this.boxes.reduce((sum, { notifications }) => sum + notifications.length, 0)
    const made = [...this.contents, ...this.relays].reduce((sum, { bytes }) => sum + bytes, 0)
    return deposits * (description.length + 400) + made
  }

  /** One operation of the mix; never rejects. */
  async one(): Promise<void> {
    const n = this.count++
    const box = this.boxes[n % this.boxes.length]
    if (box === undefined) throw new Error("not prepared")
    try {
      await this.do(kindOf(Math.random() * 100), box, n)
      this.operations++
    } catch (error) {
      if (this.wrong.length < 100) this.wrong.push(String(error))
    }
  }

  /** Differences from the acknowledged state. */
  async verify(): Promise<ReadonlyArray<string>> {
    const differing: Array<string> = []
    for (const { notifications, mailbox } of this.boxes) {
      const paths = new Set((await listMailbox(this.base, mailbox)).map(({ path }) => path))
      const missing = notifications.filter(([, path]) => !paths.has(path))
      if (missing.length > 0) differing.push(`${mailbox.path} lacks ${missing.length}`)
      if (paths.size !== notifications.length) differing.push(`${mailbox.path} has ${paths.size}`)
    }
    return differing
  }

  close(): Promise<void> {
    return this.agent.close()
  }

  private do(kind: Kind, box: Box, n: number): Promise<unknown> {
    const isFull = box.notifications.length > MAILBOX_NOTIFICATIONS_MAX
    if (kind === "remove" || (kind === "deposit" && isFull)) {
      return isFull ? this.remove(box) : this.deposit(box, n)
    }
    if (kind === "deposit") return this.deposit(box, n)
    if (kind === "content") return this.content(n)
    if (kind === "relay") return this.relay(n)
    return kind === "session" ? this.session(n) : this.read(box)
  }

  private async deposit({ notifications, mailbox }: Box, n: number): Promise<void> {
    const what = `${description}${n}`
    const { location } = await this.request("POST", mailbox.path, notification(what), xml)
    notifications.push([what, location])
  }

  private async remove({ notifications, mailbox }: Box): Promise<void> {
    const [, path = ""] = notifications.shift() ?? []
    await this.request("DELETE", path, undefined, {
      authorization: basic("reader", mailbox.password)
    })
  }

  private async read({ mailbox }: Box): Promise<void> {
    const headers = { authorization: basic("reader", mailbox.password) }
    await this.request("GET", `${mailbox.path}?limit=${PAGE}`, undefined, headers)
  }

  private async content(n: number): Promise<void> {
    const body = randomBytes(n % 2 === 0 ? 20_000 : 90_000)
    const type = { "content-type": "application/octet-stream" }
    const { headers } = await this.request("POST", "/content", body, type)
    const edit = /<([^>]*)>; rel="?edit"?/.exec([headers["link"] ?? ""].flat().join())?.[1] ?? null
    this.contents.push({ path: pathOf(edit), bytes: body.length })
    if (this.contents.length <= CONTENTS_MAX) return
    await this.request("DELETE", this.contents.shift()?.path ?? "", undefined, {})
  }

  private async relay(n: number): Promise<void> {
    const what = `${description}${n}`
    const to = `<to>${this.origin}/inbox</to>`
    const document = notification(what).replace("<item>", `${to}<item>`)
    const headers = { ...asAdmin, ...xml }
    const { location } = await this.request("POST", "/outgoing/admin", document, headers)
    this.relays.push({ path: location, bytes: document.length + 1_000 })
    if (this.relays.length <= RELAYS_MAX) return
    await this.request("DELETE", this.relays.shift()?.path ?? "", undefined, asAdmin)
  }

  private async session(n: number): Promise<void> {
    const begin = `<answer continue="true">soak ${n}</answer>`
    const { location } = await this.request("POST", "/sessions", begin, xml)
    await this.request("PUT", `${location}/name`, `<answer>Galahad</answer>`, xml)
    await this.request("DELETE", location, undefined, asAdmin)
  }

  private async request(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body: string | Buffer | undefined,
    headers: Readonly<Record<string, string>>
  ): Promise<Answered> {
    const answer = await this.agent.request({
      origin: this.base,
      path,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      headersTimeout: ANSWER_MS,
      bodyTimeout: ANSWER_MS
    })
    const text = await answer.body.text()
    if (answer.statusCode >= 400) {
      throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`)
    }
    const location = answer.headers["location"]
    return {
      headers: answer.headers,
      location: typeof location === "string" ? pathOf(location) : ""
    }
  }
}

const kindOf = (of100: number): Kind => {
  let left = of100
  for (const kind of ["deposit", "remove", "content", "relay", "session"] as const) {
    left -= weights[kind]
    if (left < 0) return kind
  }
  return "read"
}
