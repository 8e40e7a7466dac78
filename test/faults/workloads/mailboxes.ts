/** Clients of mailboxes: they deposit, read and remove, each in several mailboxes concurrently. */
import { parseSince } from "../../../actors/mailbox/cursor.ts"
import { parseNotificationId } from "../../../actors/mailbox/log-item.ts"
import { type Answer, asAdmin, childOf, type Node, notification, parseXml,
  pathOf } from "../../e2e/client.ts"
import type { Entry, MailboxInput, MailboxOutput } from "../../histories/models/mailbox.ts"
import type { Random } from "../random.ts"
import { byStatus, done, gone, type Recorder } from "../recorder.ts"

/** After this number of deposits a new mailbox is used, so that one page lists a whole mailbox. */
const depositsMax = 200

const mailboxesInUse = 4

/** The position in the log of the notification at this URI. */
export const logNumberOf = (uri: string): number => {
  const id = parseNotificationId(uri.slice(uri.lastIndexOf("/") + 1))
  if (id === undefined) throw new Error(`no notification: ${uri}`)
  return id.n
}

/** The notifications of a listing, with their positions in the log. */
export const entriesOf = (listing: Node): ReadonlyArray<Entry> =>
  listing.children.filter(({ name }) => name === "notification").map((one) => ({
    id: childOf(childOf(one, "item"), "description").text,
    place: logNumberOf(one.attributes["href"] ?? "")
  }))

export const listingOutput = (answer: Answer): MailboxOutput =>
  byStatus<MailboxOutput>(answer, {
    200: () => ({ _tag: "Listed", entries: entriesOf(parseXml(answer.text)) }),
    404: gone,
    410: gone
  })

const latestOutput = (answer: Answer): MailboxOutput =>
  byStatus<MailboxOutput>(answer, {
    200: () => {
      const entry = parseXml(answer.text).children.find(({ name }) => name === "entry")
      if (entry === undefined) return { _tag: "Latest", entry: undefined }
      const place = logNumberOf(childOf(entry, "id").text)
      return { _tag: "Latest", entry: { id: childOf(entry, "title").text, place } }
    },
    404: gone,
    410: gone
  })

export class WorkloadMailbox {
  readonly name: string
  readonly path: string
  /** The paths in responses, by the ids of the notifications. */
  readonly paths = new Map<string, string>()
  readonly ids: Array<string> = []
  /** Retried deposits. Nobody removes them, since a late copy would then be a new notification. */
  readonly repeated = new Set<string>()
  readonly removed = new Set<string>()
  /** The cursor of the last read. */
  cursor = 0
  since: string | undefined
  isDestroyed = false
  /** A new mailbox has replaced this one. */
  isFull = false
  /** A registration or a cabinet refers to it, so it is not destroyed. */
  isWatched = false

  constructor(name: string) {
    this.name = name
    this.path = `/mailboxes/${name}`
  }
}

/** The mailboxes of a run, and the operations of clients on them. */
export class MailboxWorkload {
  readonly all: Array<WorkloadMailbox> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0
  private mailboxCount = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  async open(
    client: string,
    url: string,
    name = `mailbox${this.mailboxCount++}`
  ): Promise<WorkloadMailbox> {
    const mailbox = new WorkloadMailbox(name)
    const body = `<mailbox><name>${name}</name></mailbox>`
    await this.operate(
      client,
      mailbox,
      { kind: "create" },
      (answer) => byStatus<MailboxOutput>(answer, { 201: done, 409: () => ({ _tag: "Taken" }) }),
      {
        url,
        path: "/mailboxes",
        method: "POST",
        body,
        headers: asAdmin
      }
    )
    this.all.push(mailbox)
    return mailbox
  }

  /** One of the mailboxes in use. */
  pick(): WorkloadMailbox {
    const mailbox = this.random.of(this.all.filter(({ isFull }) => !isFull).slice(-mailboxesInUse))
    if (mailbox === undefined) throw new Error("no mailbox was opened")
    return mailbox
  }

  /** Creates the mailboxes that must exist before clients choose one. */
  async start(url: string): Promise<void> {
    for (let n = 0; n < mailboxesInUse + 1; n += 1) await this.open("c0", url)
  }

  /** One random operation of a client. */
  async sendRandom(client: string, url: string): Promise<void> {
    const mailbox = this.pick()
    if (mailbox.ids.length > depositsMax) return this.replaceFull(client, url, mailbox)
    const turn = this.random.below(100)
    if (turn < 62) await this.deposit(client, url, mailbox)
    else if (turn < 68) await this.repeatDeposit(client, url, mailbox)
    else if (turn < 74) await this.list(client, url, mailbox)
    else if (turn < 82) await this.listSinceCursor(client, url, mailbox)
    else if (turn < 88) await this.readLatest(client, url, mailbox)
    else if (turn < 94) await this.read(client, url, mailbox)
    else await this.remove(client, url, mailbox)
  }

  async deposit(
    client: string,
    url: string,
    mailbox: WorkloadMailbox,
    id = `n${this.count++}`,
    headers: Readonly<Record<string, string>> = {}
  ): Promise<boolean> {
    if (!mailbox.ids.includes(id)) mailbox.ids.push(id)
    const deposited = await this.operate(
      client,
      mailbox,
      { kind: "deposit", id },
      (answer) =>
        byStatus<MailboxOutput>(answer, {
          202: () => ({
            _tag: "Deposited",
            place: logNumberOf(pathOf(answer.headers.get("location")))
          }),
          404: gone,
          410: gone
        }),
      { url, path: mailbox.path, method: "POST", body: notification(id), headers }
    )
    if (deposited?.output._tag !== "Deposited") return false
    mailbox.paths.set(id, pathOf(deposited.answer.headers.get("location")))
    return true
  }

  /** Undefined without a response. */
  async list(
    client: string,
    url: string,
    mailbox: WorkloadMailbox
  ): Promise<MailboxOutput | undefined> {
    const path = `${mailbox.path}?limit=1000`
    const found = await this.operate(client, mailbox, { kind: "list" }, listingOutput, {
      url,
      path,
      headers: asAdmin
    })
    return found?.output
  }

  private async repeatDeposit(
    client: string,
    url: string,
    mailbox: WorkloadMailbox
  ): Promise<void> {
    const id = this.random.of(mailbox.ids.filter((one) => !mailbox.removed.has(one)))
    if (id === undefined) return
    mailbox.repeated.add(id)
    await this.deposit(client, url, mailbox, id)
  }

  private async listSinceCursor(
    client: string,
    url: string,
    mailbox: WorkloadMailbox
  ): Promise<void> {
    const { cursor, since } = mailbox
    const path = `${mailbox.path}?limit=1000${
      since === undefined ? "" : `&since=${encodeURIComponent(since)}`
    }`
    const input: MailboxInput = since === undefined
      ? { kind: "list" }
      : { kind: "since", place: cursor }
    const found = await this.operate(client, mailbox, input, listingOutput, {
      url,
      path,
      headers: asAdmin
    })
    if (found?.output._tag !== "Listed") return
    const time = parseXml(found.answer.text).attributes["time"] ?? ""
    const at = parseSince(time)
    if (at?._tag !== "After") return void this.recorder.violations.push(`no cursor: ${time}`)
    mailbox.since = time
    mailbox.cursor = at.n
  }

  private async readLatest(client: string, url: string, mailbox: WorkloadMailbox): Promise<void> {
    const headers = { ...asAdmin, accept: "application/atom+xml" }
    const path = `${mailbox.path}?limit=1`
    await this.operate(client, mailbox, { kind: "latest" }, latestOutput, { url, path, headers })
  }

  private async read(client: string, url: string, mailbox: WorkloadMailbox): Promise<void> {
    const path = this.random.of([...mailbox.paths.values()])
    if (path === undefined) return
    await this.operate(
      client,
      mailbox,
      { kind: "read", place: logNumberOf(path) },
      (answer) =>
        byStatus<MailboxOutput>(answer, {
          200: () => ({
            _tag: "Found",
            id: childOf(childOf(parseXml(answer.text), "item"), "description").text
          }),
          404: gone,
          410: gone
        }),
      { url, path, headers: asAdmin }
    )
  }

  private async remove(client: string, url: string, mailbox: WorkloadMailbox): Promise<void> {
    const one = this.random.of([...mailbox.paths].filter(([id]) => !mailbox.repeated.has(id)))
    if (one === undefined) return
    const [id, path] = one
    mailbox.removed.add(id)
    const request = { url, path, method: "DELETE", headers: asAdmin }
    await this.operate(
      client,
      mailbox,
      { kind: "remove", place: logNumberOf(path) },
      (answer) => byStatus<MailboxOutput>(answer, { 204: done, 404: gone, 410: gone }),
      request
    )
  }

  /** Replaces a full mailbox, which may be destroyed. */
  private async replaceFull(client: string, url: string, mailbox: WorkloadMailbox): Promise<void> {
    // Before the first await, so that only one client replaces it.
    mailbox.isFull = true
    const isDestroyed = !mailbox.isWatched && this.random.below(2) === 0
    mailbox.isDestroyed = isDestroyed
    await this.open(client, url)
    if (!isDestroyed) return
    const request = { url, path: mailbox.path, method: "DELETE", headers: asAdmin }
    await this.operate(
      client,
      mailbox,
      { kind: "destroy" },
      (answer) => byStatus<MailboxOutput>(answer, { 204: done, 404: gone, 410: gone }),
      request
    )
  }

  private operate(
    client: string,
    mailbox: WorkloadMailbox,
    input: MailboxInput,
    read: (answer: Answer) => MailboxOutput | "refused",
    request: Parameters<Recorder["invoke"]>[2]
  ) {
    const operation = { client, resource: mailbox.name, input }
    return this.recorder.invoke(this.recorder.histories.mailboxes, operation, request, read)
  }
}
