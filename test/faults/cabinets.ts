/**
 * Readers of cabinets. A merged listing is no snapshot of several mailboxes, so each mailbox is
 * checked separately: the listing has its notifications after the previous cursor.
 */
import { parseCabinetSince, positionKey } from "../../http/resources/cabinets/cabinet-cursor.ts"
import { type Answer, asAdmin, parseXml, pathOf } from "../e2e/client.ts"
import { publicUrl } from "../e2e/process.ts"
import { type Box, type Boxes, entriesOf } from "./boxes.ts"
import type { Recorder } from "./recorder.ts"

/** After this number of reads a new cabinet is created. */
const pollsMax = 60

/** A cabinet of one reader, and its cursor. */
interface Cabinet {
  readonly path: string
  readonly boxes: ReadonlyArray<Box>
  readonly positions: Map<string, number>
  since: string | undefined
  polls: number
}

export class Cabinets {
  /** Verified readings, counted once for each mailbox. */
  readings = 0
  private readonly recorder: Recorder
  private readonly boxes: Boxes
  private readonly byClient = new Map<string, Cabinet>()

  constructor(recorder: Recorder, boxes: Boxes) {
    this.recorder = recorder
    this.boxes = boxes
  }

  /** Reads the next page of the client's own cabinet. */
  async act(client: string, url: string): Promise<void> {
    const cabinet = this.byClient.get(client) ?? await this.make(client, url)
    if (cabinet === undefined) return
    if (cabinet.polls++ > pollsMax) this.byClient.delete(client)
    const since = cabinet.since === undefined ? "" : `&since=${encodeURIComponent(cabinet.since)}`
    const path = `${cabinet.path}?limit=1000${since}`
    const { answer, end, start } = await this.recorder.ask({ url, path, headers: asAdmin })
    if (answer === undefined) return
    if (answer.status !== 200) {
      return void this.recorder.surprises.push(`${path}: ${answer.status} ${answer.text}`)
    }
    this.read(client, cabinet, answer, start, end)
  }

  private async make(client: string, url: string): Promise<Cabinet | undefined> {
    const boxes = [...new Set([this.boxes.pick(), this.boxes.pick()])]
    if (boxes.some(({ isFull }) => isFull)) return undefined
    for (const box of boxes) box.isWatched = true
    const hrefs = boxes.map(({ path }) => `<mailbox href="${publicUrl}${path}"/>`).join("")
    const { answer } = await this.recorder.ask({
      url,
      path: "/cabinets",
      method: "POST",
      body: `<cabinet><title>t</title>${hrefs}</cabinet>`,
      headers: asAdmin
    })
    if (answer?.status !== 201) return undefined
    const path = pathOf(answer.headers.get("location"))
    const cabinet: Cabinet = {
      path,
      boxes,
      positions: new Map(),
      since: undefined,
      polls: 0
    }
    this.byClient.set(client, cabinet)
    return cabinet
  }

  private read(
    client: string,
    cabinet: Cabinet,
    answer: Answer,
    start: number,
    end: number
  ): void {
    const document = parseXml(answer.text)
    const time = document.attributes["time"] ?? ""
    const since = parseCabinetSince(time)
    if (since?._tag !== "Behind" || document.children.length === 0) {
      return void this.recorder.surprises.push(`no cursor of a cabinet: ${time}`)
    }
    // The cabinet cannot read a mailbox whose creation is indeterminate.
    const unread = new Set(
      document.children.filter(({ attributes }) => attributes["readable"] === "false")
        .map(({ attributes }) => pathOf(attributes["href"] ?? ""))
    )
    for (const box of cabinet.boxes) {
      if (unread.has(box.path)) continue
      const children = document.children.filter(({ attributes, name }) =>
        name === "notification" && pathOf(attributes["mailbox"] ?? "") === box.path
      )
      const place = cabinet.positions.get(box.path) ?? 0
      const cursor = since.positions.get(positionKey(box.name)) ?? 0
      if (cursor < place) this.recorder.surprises.push(`${time} goes back behind ${place}`)
      const output = { _tag: "Listed" as const, entries: entriesOf({ ...document, children }) }
      const input = { kind: "since" as const, place }
      const operation = { client: `${client} ${cabinet.path}`, resource: box.name, input }
      this.recorder.histories.mailboxes.push({ ...operation, output, start, end, outcome: "ok" })
      cabinet.positions.set(box.path, cursor)
      this.readings += 1
    }
    cabinet.since = time
  }
}
