/**
 * Steady load upon a cluster, with a history of what was acknowledged, and what must be true of it
 * afterwards. A refusal with 5xx, a lost connection and no answer in time all leave it unknown
 * whether something was done: nothing is concluded from them.
 */
import { expect } from "vitest"
import {
  type Answer,
  asAdmin,
  expectStatus,
  listMailbox,
  notification,
  parseXml,
  pathOf,
  postXml,
  putXml,
  send,
  sha256
} from "../e2e/client.ts"
import { History } from "../e2e/history.ts"
import { eventually, pause, publicUrl } from "../e2e/process.ts"
import { type Inbox, type Inboxes, startInboxes } from "./inboxes.ts"

type Box = History["boxes"][number]

interface Subscribed {
  readonly box: Box
  readonly inbox: Inbox
}

const boxesCount = 6
const subscribedCount = 3
const probesCount = 12
/** Between two requests of one client. */
const betweenMs = 15
/** What was relayed or pushed while something was broken has come by then. */
const deliveredWithinMs = 120_000
const verifiedWithinMs = 30_000
const relayedBox = "relayed"

const noMailbox = (): never => {
  throw new Error("nothing was opened")
}

/** Everything is tried again soon, and for long. */
export const loadEnv = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: ["0s", ...Array.from({ length: 30 }, () => "2s")].join(",")
}

export class Load {
  readonly history = new History()
  /** Answers of 5xx, whole. */
  readonly refusals: Array<string> = []
  acknowledged = 0
  unknown = 0
  private readonly targets: () => ReadonlyArray<string>
  private readonly inboxes: Inboxes
  private readonly subscribed: Array<Subscribed> = []
  private readonly probes: Array<Box> = []
  private readonly relayed: Array<string> = []
  private relayedTo: Box | undefined
  private readonly ending = new AbortController()
  private clients: ReadonlyArray<Promise<void>> = []
  private count = 0

  private constructor(targets: () => ReadonlyArray<string>, inboxes: Inboxes) {
    this.targets = targets
    this.inboxes = inboxes
  }

  /** Sends to any of the targets until it is ended. */
  static async start(targets: () => ReadonlyArray<string>): Promise<Load> {
    const load = new Load(targets, await startInboxes())
    await load.open()
    load.clients = [
      ...load.history.boxes.slice(0, boxesCount).map((box) =>
        load.loop((url) => load.deposit(url, box))
      ),
      load.loop((url) => load.walk(url)),
      load.loop((url) => load.publish(url)),
      load.loop((url) => load.relay(url))
    ]
    return load
  }

  async end(): Promise<void> {
    this.ending.abort()
    await Promise.all(this.clients)
  }

  /**
   * Waits until each of these nodes takes deposits for mailboxes of all of them, and shows them;
   * gives the time that it took, ms.
   */
  async servedAgain(urls: ReadonlyArray<string>, withinMs: number): Promise<number> {
    const begunMs = performance.now()
    const served = async (url: string, box: Box) => {
      if (!await this.deposit(url, box)) return undefined
      const shown = await this.tried(send(url, box.mailbox.path, { headers: asAdmin }))
      return shown?.status === 200 ? true : undefined
    }
    const all = urls.flatMap((url) => this.probes.map((box) => [url, box] as const))
    await Promise.all(
      all.map(([url, box]) =>
        eventually(withinMs, `${box.mailbox.path} is served`, () => served(url, box), 100)
      )
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; refused lately:\n${this.refusals.slice(-5).join("\n")}`)
    })
    return Math.round(performance.now() - begunMs)
  }

  /** Nothing acknowledged is lost, doubled or out of order, at any of these nodes. */
  async verify(urls: ReadonlyArray<string>): Promise<void> {
    await Promise.all(urls.map((url) => this.verifyNode(url)))
    const [url = ""] = urls
    await this.verifyRelays(url)
    for (const one of this.subscribed) await this.verifyPushes(url, one)
    expect(this.acknowledged).toBeGreaterThan(100)
    const { contents, sessions } = this.history
    expect(contents.length * sessions.length * this.relayed.length).toBeGreaterThan(0)
  }

  private async verifyNode(url: string): Promise<void> {
    const { boxes, contents, sessions } = this.history
    // A node that has just come back may have an index to read yet.
    await eventually(
      verifiedWithinMs,
      "it is ready",
      async () =>
        (await send(url, "/readyz").catch(() => undefined))?.status === 200 ? true : undefined
    )
    for (const box of boxes) await this.history.verifyBox(url, box)
    for (const one of contents) await this.history.verifyContent(url, one)
    for (const one of sessions) await this.history.verifySession(url, one)
  }

  private async open(): Promise<void> {
    const names = [
      ...Array.from({ length: boxesCount }, (_, at) => `box${at}`),
      ...Array.from({ length: probesCount }, (_, at) => `probe${at}`)
    ]
    for (const name of [...names, relayedBox]) {
      const box = await this.history.open(this.anywhere(), name)
      if (box === undefined) {
        throw new Error("the cluster does not answer before anything is broken")
      }
      if (name.startsWith("probe")) this.probes.push(box)
    }
    // What is relayed there has its own check.
    this.relayedTo = this.history.boxes.pop()
    for (const box of this.history.boxes.slice(0, subscribedCount)) {
      const { inbox, uri } = this.inboxes.callback(box.mailbox.path.slice("/mailboxes/".length))
      const document = `<registration><callback>${uri}</callback></registration>`
      const path = `${box.mailbox.path}/registrations`
      const made = expectStatus(await postXml(this.anywhere(), path, document, asAdmin), 201)
      const registration = pathOf(made.headers.get("location"))
      await eventually(verifiedWithinMs, "the callback is verified", async () => {
        const shown = await send(this.anywhere(), registration, { headers: asAdmin })
        return parseXml(shown.text).attributes["status"] === "active" ? true : undefined
      })
      this.subscribed.push({ box, inbox })
    }
  }

  private anywhere(): string {
    const urls = this.targets()
    return urls[Math.floor(Math.random() * urls.length)] ?? ""
  }

  private async loop(act: (url: string) => Promise<unknown>): Promise<void> {
    while (!this.ending.signal.aborted) {
      await act(this.anywhere())
      await pause(betweenMs)
    }
  }

  /** The answer; undefined when it is unknown what has become of the request. */
  private async tried(request: Promise<Answer>): Promise<Answer | undefined> {
    const answer = await request.catch(() => undefined)
    if (answer === undefined || answer.status >= 500) {
      this.unknown += 1
      if (answer !== undefined) this.refusals.push(`${answer.status}: ${answer.text}`)
      return undefined
    }
    this.acknowledged += 1
    return answer
  }

  /** Whether it was accepted. */
  private async deposit(url: string, box: Box): Promise<boolean> {
    const description = `n${this.count++}`
    const startMs = performance.now()
    const one: Box["deposits"][number] = {
      description,
      startMs,
      endMs: Infinity,
      path: undefined,
      removed: undefined
    }
    box.deposits.push(one)
    const answer = await this.tried(postXml(url, box.mailbox.path, notification(description)))
    if (answer === undefined) return false
    one.path = pathOf(expectStatus(answer, 202).headers.get("location"))
    one.endMs = performance.now()
    return true
  }

  private async walk(url: string): Promise<void> {
    const begun = await this.tried(
      postXml(url, "/sessions", `<answer continue="true">Yes</answer>`)
    )
    if (begun === undefined) return
    const path = pathOf(expectStatus(begun, 201).headers.get("location"))
    const session: History["sessions"][number] = { path, answers: new Map() }
    this.history.sessions.push(session)
    for (const [step, text] of [["name", `Galahad ${this.count++}`], ["quest", "the Grail"]]) {
      if (step === undefined || text === undefined) return
      session.answers.set(step, { text, outcome: "unknown" })
      const put = putXml(this.anywhere(), `${path}/${step}`, `<answer>${text}</answer>`)
      const answer = await this.tried(put)
      if (answer === undefined) return
      expectStatus(answer, 200, 201)
      session.answers.set(step, { text, outcome: "acknowledged" })
    }
  }

  private async publish(url: string): Promise<void> {
    const body = Buffer.alloc(this.count % 3 === 0 ? 200_000 : 2_000, `content ${this.count++}`)
    const headers = { "content-type": "application/octet-stream" }
    const answer = await this.tried(send(url, "/content", { method: "POST", body, headers }))
    if (answer === undefined) return
    const path = pathOf(expectStatus(answer, 202).headers.get("location"))
    const bodies = [sha256(body)]
    this.history.contents.push({ path, editPath: "", bodies, removed: undefined })
    await pause(100)
  }

  /** To a receiver outside, and to a mailbox of the cluster itself. */
  private async relay(url: string): Promise<void> {
    const description = `relay${this.count++}`
    const own = `${publicUrl}/mailboxes/${relayedBox}`
    const to = [this.inboxes.relays.uri, own].map((uri) => `<to>${uri}</to>`).join("")
    const document = notification(description).replace("<item>", `${to}<item>`)
    const answer = await this.tried(postXml(url, "/outgoing/admin", document, asAdmin))
    if (answer !== undefined && expectStatus(answer, 202)) this.relayed.push(description)
  }

  private async verifyRelays(url: string): Promise<void> {
    const { inbox } = this.inboxes.relays
    const missing = () => this.relayed.filter((one) => !inbox.ids.has(one))
    await eventually(
      deliveredWithinMs,
      "everything is relayed",
      () => missing().length === 0 ? true : undefined
    ).catch(() => expect(missing(), "never relayed").toEqual([]))
    const otherIds = [...inbox.ids].filter(([, ids]) => ids.size > 1)
    expect(otherIds, "relayed again with another id").toEqual([])
    const own = await listMailbox(url, this.relayedTo?.mailbox ?? noMailbox())
    const there = own.map(({ description }) => description)
    expect(this.relayed.filter((one) => !there.includes(one)), "not handed over").toEqual([])
    expect(there.length, "handed over twice").toBe(new Set(there).size)
  }

  private async verifyPushes(url: string, { box, inbox }: Subscribed): Promise<void> {
    const listed = (await listMailbox(url, box.mailbox)).map(({ path }) => publicUrl + path)
    const missing = () => listed.filter((href) => !inbox.ids.has(href))
    await eventually(
      deliveredWithinMs,
      "everything is pushed",
      () => missing().length === 0 ? true : undefined
    ).catch(() => expect(missing(), "never pushed").toEqual([]))
    expect(inbox.order, "pushed in the mailbox's order").toEqual(listed)
  }
}
