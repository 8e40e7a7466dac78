/**
 * Readers of cabinets. A merged listing is no snapshot of several mailboxes, so each mailbox is
 * checked separately: the listing has its notifications after the previous cursor.
 */
import { cursorKey, parseCabinetSince } from "../../../http/resources/cabinets/cabinet-cursor.ts"
import { type Answer, asAdmin, parseXml, pathOf } from "../../e2e/client.ts"
import { publicUrl } from "../../e2e/process.ts"
import type { Recorder } from "../recorder.ts"
import { entriesOf, type MailboxWorkload, type WorkloadMailbox } from "./mailboxes.ts"

/** After this number of reads a new cabinet is created. */
const pagesMax = 60

/** A cabinet of one reader, and its cursor. */
interface Cabinet {
  readonly path: string
  readonly mailboxes: ReadonlyArray<WorkloadMailbox>
  readonly positions: Map<string, number>
  since: string | undefined
  pagesRead: number
}

export class CabinetWorkload {
  /** Verified readings, counted once for each mailbox. */
  mailboxPages = 0
  private readonly recorder: Recorder
  private readonly mailboxes: MailboxWorkload
  private readonly byClient = new Map<string, Cabinet>()

  constructor(recorder: Recorder, mailboxes: MailboxWorkload) {
    this.recorder = recorder
    this.mailboxes = mailboxes
  }

  /** Reads the next page of the client's own cabinet. */
  async sendRandom(client: string, url: string): Promise<void> {
    const cabinet = this.byClient.get(client) ?? await this.create(client, url)
    if (cabinet === undefined) return
    if (cabinet.pagesRead++ > pagesMax) this.byClient.delete(client)
    const since = cabinet.since === undefined ? "" : `&since=${encodeURIComponent(cabinet.since)}`
    const path = `${cabinet.path}?limit=1000${since}`
    const { answer, end, start } = await this.recorder.send({ url, path, headers: asAdmin })
    if (answer === undefined) return
    if (answer.status !== 200) {
      return void this.recorder.violations.push(`${path}: ${answer.status} ${answer.text}`)
    }
    this.recordPage(client, cabinet, answer, start, end)
  }

  private async create(client: string, url: string): Promise<Cabinet | undefined> {
    const mailboxes = [...new Set([this.mailboxes.pick(), this.mailboxes.pick()])]
    if (mailboxes.some(({ isFull }) => isFull)) return undefined
    for (const mailbox of mailboxes) mailbox.isWatched = true
    const hrefs = mailboxes.map(({ path }) => `<mailbox href="${publicUrl}${path}"/>`).join("")
    const { answer } = await this.recorder.send({
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
      mailboxes,
      positions: new Map(),
      since: undefined,
      pagesRead: 0
    }
    this.byClient.set(client, cabinet)
    return cabinet
  }

  private recordPage(
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
      return void this.recorder.violations.push(`no cursor of a cabinet: ${time}`)
    }
    // The cabinet cannot read a mailbox whose creation is indeterminate.
    const unread = new Set(
      document.children.filter(({ attributes }) => attributes["readable"] === "false")
        .map(({ attributes }) => pathOf(attributes["href"] ?? ""))
    )
    for (const mailbox of cabinet.mailboxes) {
      if (unread.has(mailbox.path)) continue
      const children = document.children.filter(({ attributes, name }) =>
        name === "notification" && pathOf(attributes["mailbox"] ?? "") === mailbox.path
      )
      const place = cabinet.positions.get(mailbox.path) ?? 0
      const cursor = since.positions.get(cursorKey(mailbox.name)) ?? 0
      if (cursor < place) this.recorder.violations.push(`${time} goes back behind ${place}`)
      const output = { _tag: "Listed" as const, entries: entriesOf({ ...document, children }) }
      const input = { kind: "since" as const, place }
      const operation = { client: `${client} ${cabinet.path}`, resource: mailbox.name, input }
      this.recorder.histories.mailboxes.push({ ...operation, output, start, end, outcome: "ok" })
      cabinet.positions.set(mailbox.path, cursor)
      this.mailboxPages += 1
    }
    cabinet.since = time
  }
}
