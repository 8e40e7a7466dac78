/** The lines of a content: what it is, its bytes, and the receipts of its recipients. */
import type { OwnedEntry } from "../../../actors/account/index.ts"
import { type ContentMessage, type ContentView } from "../../../actors/content/index.ts"
import { contentKind, receiptsMax } from "../../../actors/index.ts"
import { type Address, address, isRefusal } from "../../../runtime/index.ts"
import { isoTime, writeElement } from "../../formats/xml/index.ts"
import { exportLineBytes, exportPage } from "../../limits.ts"
import { contentUri, describeActor, type Service } from "../../pipeline/index.ts"
import { receiptElement } from "../content/index.ts"
import { type ExportLine, run } from "./export-source.ts"

/** The bytes as base64, in lines of one size but for the last. */
async function* bytesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<ExportLine> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const chunk of source) {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (bytes.length >= exportLineBytes) {
      yield base64Line(bytes.subarray(0, exportLineBytes))
      bytes = bytes.subarray(exportLineBytes)
    }
    rest = bytes
  }
  if (rest.length > 0) yield base64Line(rest)
}

const base64Line = (bytes: Uint8Array): ExportLine => ({
  kind: "bytes",
  base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")
})

/** `lost`: the body was replaced or removed while it was read, and its lines do not count. */
async function* bodyOf({ blobs }: Service, { body }: ContentView): AsyncGenerator<ExportLine> {
  let state = "lost"
  try {
    if (body.lengthBytes > 0) yield* bytesOf(await run(blobs.open(body.blobId)))
    state = "whole"
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  yield { kind: "content-end", state }
}

const isMissing = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "BlobMissing"

async function* receiptsOf(service: Service, to: Address): AsyncGenerator<ExportLine> {
  for (let next = 1; next <= receiptsMax;) {
    const items = await run(service.system.read(to, next, exportPage))
    for (const item of items) {
      const element = receiptElement(service, `/content/${to.id}`, item)
      yield { kind: "receipt", href: element.attributes["href"], xml: writeElement(element) }
    }
    const last = items.at(-1)
    if (last === undefined) return
    next = last.n + 1
  }
}

export async function* exportedContent(
  service: Service,
  account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const to = address(contentKind, id)
  const message: ContentMessage = { _tag: "Describe", access: { account } }
  const view = await run(describeActor<ContentView>(service, to, message))
  if (isRefusal(view)) return
  const { disposition, lengthBytes, type } = view.body
  yield {
    kind: "content",
    href: contentUri(service, id),
    type,
    disposition,
    length: lengthBytes,
    modified: isoTime(view.lastModifiedMs)
  }
  yield* bodyOf(service, view)
  yield* receiptsOf(service, to)
}
