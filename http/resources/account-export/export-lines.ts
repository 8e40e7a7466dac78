/**
 * The lines of an export, each a JSON object; README.md has their form. They are read page by page
 * while they are sent, so that an export of any size needs the memory of one page. What is created
 * meanwhile may be missing. No line has a secret: neither tokens nor passwords, nor their hashes.
 */
import type { Effect } from "effect"
import { createHash } from "node:crypto"
import { type AccountView, type OwnedEntry, type OwnedResource,
  readOwned } from "../../../actors/account/index.ts"
import { exportPage } from "../../limits.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { absoluteUri, type HandlerFailure, type Service } from "../../pipeline/index.ts"
import { accountElement, accountPath } from "../accounts/index.ts"
import { availableLines, type ExportLine, type ExportSource, lineOf, run } from "./export-source.ts"
import { exportedContent } from "./exported-content.ts"
import { exportedMailbox } from "./exported-mailbox.ts"
import { exportedCabinet, exportedPauses, exportedQuery, exportedSent,
  exportedSession } from "./exported-resources.ts"

/** The format of the lines. */
const exportFormat = 1

/** The lines of each kind of resource; none for an entry whose resource does not exist. */
const sources: ReadonlyArray<readonly [kind: OwnedResource, lines: ExportSource]> = [
  ["mailboxes", exportedMailbox],
  ["cabinets", exportedCabinet],
  ["outgoing", exportedSent],
  ["sessions", exportedSession],
  ["queries", exportedQuery],
  ["content", exportedContent]
]

async function* entriesOf(
  { records }: Service,
  account: string,
  kind: OwnedResource
): AsyncGenerator<OwnedEntry> {
  let after: string | undefined
  for (;;) {
    const range: Effect.Effect<ReadonlyArray<OwnedEntry>, HandlerFailure> = readOwned(
      records,
      account,
      kind,
      { after, limit: exportPage }
    )
    const entries = await run(range)
    yield* entries
    after = entries.at(-1)?.key
    if (entries.length < exportPage) return
  }
}

async function* linesOf(service: Service, account: AccountView): AsyncGenerator<ExportLine> {
  const { name } = account
  yield {
    restante: "account-export",
    format: exportFormat,
    version: service.settings.version,
    time: new Date(service.nowMs()).toISOString(),
    account: name
  }
  const href = absoluteUri(service, accountPath(name))
  yield { kind: "account", href, xml: writeElement(accountElement(service, account)) }
  yield* availableLines("pauses", name, exportedPauses(service, name))
  for (const [kind, lines] of sources) {
    for await (const entry of entriesOf(service, name, kind)) {
      yield* availableLines(kind, entry.id, lines(service, name, entry))
    }
  }
}

/**
 * The export as bytes. Its last line has the number and the SHA-256 of the lines before it, and
 * how many of them say that something is unavailable.
 */
export async function* exportLines(
  service: Service,
  account: AccountView
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256")
  let lines = 0
  let unavailable = 0
  for await (const line of linesOf(service, account)) {
    const bytes = lineOf(line)
    hash.update(bytes)
    lines++
    if (line["kind"] === "unavailable") unavailable++
    yield bytes
  }
  const missing = unavailable === 0 ? {} : { unavailable }
  yield lineOf({ kind: "end", lines, ...missing, sha256: hash.digest("hex") })
}
