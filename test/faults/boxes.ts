/** Clients of mailboxes: they deposit, read and remove, each in several mailboxes concurrently. */
import { parseSince } from "../../actors/mailbox/cursor.ts"
import { parseNotificationId } from "../../actors/mailbox/log-item.ts"
import { type Answer, asAdmin, childOf, type Node, notification, parseXml,
  pathOf } from "../e2e/client.ts"
import type { Entry, MailboxInput, MailboxOutput } from "../histories/models/mailbox.ts"
import type { Random } from "./random.ts"
import { byStatus, type Recorder } from "./recorder.ts"

/** After this number of deposits a new mailbox is used, so that one page lists a whole mailbox. */
const depositsMax = 200
const openBoxes = 4

const gone = (): MailboxOutput => ({ _tag: "Gone" })
const done = (): MailboxOutput => ({ _tag: "Done" })

/** The position in the log of the notification at this URI. */
export const placeOf = (uri: string): number => {
  const id = parseNotificationId(uri.slice(uri.lastIndexOf("/") + 1))
  if (id === undefined) throw new Error(`no notification: ${uri}`)
  return id.n
}

/** The notifications of a listing, with their positions in the log. */
export const entriesOf = (listing: Node): ReadonlyArray<Entry> =>
  listing.children.filter(({ name }) => name === "notification").map((one) => ({
    id: childOf(childOf(one, "item"), "description").text,
    place: placeOf(one.attributes["href"] ?? "")
  }))

export const listed = (answer: Answer): MailboxOutput =>
  byStatus(answer, {
    200: () => ({ _tag: "Listed", entries: entriesOf(parseXml(answer.text)) }),
    404: gone,
    410: gone
  })

const latest = (answer: Answer): MailboxOutput =>
  byStatus(answer, {
    200: () => {
      const entry = parseXml(answer.text).children.find(({ name }) => name === "entry")
      if (entry === undefined) return { _tag: "Latest", entry: undefined }
      const place = placeOf(childOf(entry, "id").text)
      return { _tag: "Latest", entry: { id: childOf(entry, "title").text, place } }
    },
    404: gone,
    410: gone
  })

export class Box {
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
export class Boxes {
  readonly all: Array<Box> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0
  private boxCount = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  async open(client: string, url: string, name = `box${this.boxCount++}`): Promise<Box> {
    const box = new Box(name)
    const body = `<mailbox><name>${name}</name></mailbox>`
    await this.operate(
      client,
      box,
      { kind: "create" },
      (answer) => byStatus(answer, { 201: done, 409: () => ({ _tag: "Taken" }) }),
      {
        url,
        path: "/mailboxes",
        method: "POST",
        body,
        headers: asAdmin
      }
    )
    this.all.push(box)
    return box
  }

  /** One of the mailboxes in use. */
  pick(): Box {
    const box = this.random.of(this.all.filter(({ isFull }) => !isFull).slice(-openBoxes))
    if (box === undefined) throw new Error("no mailbox was opened")
    return box
  }

  /** Creates the mailboxes that must exist before clients choose one. */
  async start(url: string): Promise<void> {
    for (let n = 0; n < openBoxes + 1; n += 1) await this.open("c0", url)
  }

  /** One random operation of a client. */
  async act(client: string, url: string): Promise<void> {
    const box = this.pick()
    if (box.ids.length > depositsMax) return this.renew(client, url, box)
    const turn = this.random.below(100)
    if (turn < 62) await this.deposit(client, url, box)
    else if (turn < 68) await this.depositAgain(client, url, box)
    else if (turn < 74) await this.list(client, url, box)
    else if (turn < 82) await this.listOn(client, url, box)
    else if (turn < 88) await this.readLatest(client, url, box)
    else if (turn < 94) await this.read(client, url, box)
    else await this.remove(client, url, box)
  }

  async deposit(
    client: string,
    url: string,
    box: Box,
    id = `n${this.count++}`,
    headers: Readonly<Record<string, string>> = {}
  ): Promise<boolean> {
    if (!box.ids.includes(id)) box.ids.push(id)
    const deposited = await this.operate(
      client,
      box,
      { kind: "deposit", id },
      (answer) =>
        byStatus(answer, {
          202: (): MailboxOutput => ({
            _tag: "Deposited",
            place: placeOf(pathOf(answer.headers.get("location")))
          }),
          404: gone,
          410: gone
        }),
      { url, path: box.path, method: "POST", body: notification(id), headers }
    )
    if (deposited?.output._tag !== "Deposited") return false
    box.paths.set(id, pathOf(deposited.answer.headers.get("location")))
    return true
  }

  /** Undefined without a response. */
  async list(client: string, url: string, box: Box): Promise<MailboxOutput | undefined> {
    const path = `${box.path}?limit=1000`
    const found = await this.operate(client, box, { kind: "list" }, listed, {
      url,
      path,
      headers: asAdmin
    })
    return found?.output
  }

  private async depositAgain(client: string, url: string, box: Box): Promise<void> {
    const id = this.random.of(box.ids.filter((one) => !box.removed.has(one)))
    if (id === undefined) return
    box.repeated.add(id)
    await this.deposit(client, url, box, id)
  }

  private async listOn(client: string, url: string, box: Box): Promise<void> {
    const { cursor, since } = box
    const path = `${box.path}?limit=1000${
      since === undefined ? "" : `&since=${encodeURIComponent(since)}`
    }`
    const input: MailboxInput = since === undefined
      ? { kind: "list" }
      : { kind: "since", place: cursor }
    const found = await this.operate(client, box, input, listed, { url, path, headers: asAdmin })
    if (found?.output._tag !== "Listed") return
    const time = parseXml(found.answer.text).attributes["time"] ?? ""
    const at = parseSince(time)
    if (at?._tag !== "After") return void this.recorder.surprises.push(`no cursor: ${time}`)
    box.since = time
    box.cursor = at.n
  }

  private async readLatest(client: string, url: string, box: Box): Promise<void> {
    const headers = { ...asAdmin, accept: "application/atom+xml" }
    const path = `${box.path}?limit=1`
    await this.operate(client, box, { kind: "latest" }, latest, { url, path, headers })
  }

  private async read(client: string, url: string, box: Box): Promise<void> {
    const path = this.random.of([...box.paths.values()])
    if (path === undefined) return
    await this.operate(
      client,
      box,
      { kind: "read", place: placeOf(path) },
      (answer) =>
        byStatus(answer, {
          200: (): MailboxOutput => ({
            _tag: "Found",
            id: childOf(childOf(parseXml(answer.text), "item"), "description").text
          }),
          404: gone,
          410: gone
        }),
      { url, path, headers: asAdmin }
    )
  }

  private async remove(client: string, url: string, box: Box): Promise<void> {
    const one = this.random.of([...box.paths].filter(([id]) => !box.repeated.has(id)))
    if (one === undefined) return
    const [id, path] = one
    box.removed.add(id)
    const request = { url, path, method: "DELETE", headers: asAdmin }
    await this.operate(
      client,
      box,
      { kind: "remove", place: placeOf(path) },
      (answer) => byStatus(answer, { 204: done, 404: gone, 410: gone }),
      request
    )
  }

  /** Replaces a full mailbox, which may be destroyed. */
  private async renew(client: string, url: string, box: Box): Promise<void> {
    // Before the first await, so that only one client replaces it.
    box.isFull = true
    const isDestroyed = !box.isWatched && this.random.below(2) === 0
    box.isDestroyed = isDestroyed
    await this.open(client, url)
    if (!isDestroyed) return
    const request = { url, path: box.path, method: "DELETE", headers: asAdmin }
    await this.operate(
      client,
      box,
      { kind: "destroy" },
      (answer) => byStatus(answer, { 204: done, 404: gone, 410: gone }),
      request
    )
  }

  private operate(
    client: string,
    box: Box,
    input: MailboxInput,
    read: (answer: Answer) => MailboxOutput | "refused",
    request: Parameters<Recorder["operate"]>[2]
  ) {
    const operation = { client, resource: box.name, input }
    return this.recorder.operate(this.recorder.histories.mailboxes, operation, request, read)
  }
}
