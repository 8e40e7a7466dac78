/** Receipts (A4): what recipients report of a message, and their listing for the publisher. */
import { decodeReceipt } from "../../../actors/content/index.ts"
import { parseUrl, receiptsMax } from "../../../actors/index.ts"
import type { LogItem } from "../../../runtime/index.ts"
import { acceptedBodies } from "../../formats/index.ts"
import { childText, type Element, element, optionalElement } from "../../formats/xml/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { absoluteUri, type Call, contentUri, defineHandler, expectReply, httpError, readDocument,
  type Service, viewAnswer } from "../../pipeline/index.ts"
import { askAsReader, contentAddressOf, requireEditor } from "./content-access.ts"

/** The types of a receipt. */
export const acceptPost = acceptedBodies(false)

const statuses = new Set(["received", "retrieved", "problem"])

interface Receipt {
  readonly status: string
  readonly mailbox?: string
  readonly description?: string
}

const isHttpUri = (text: string): boolean =>
  text.length <= uriCharsMax && /^https?:\/\//.test(text) && parseUrl(text) !== undefined

/** The receipt of a document, or its fault. */
const receiptOf = (root: Element): Receipt | string => {
  const { mailbox, status } = root.attributes
  if (status === undefined || !statuses.has(status)) {
    return "status must be received, retrieved or problem"
  }
  if (mailbox !== undefined && !isHttpUri(mailbox)) return "mailbox must be an http or https URI"
  const description = childText(root, "description")
  return {
    status,
    ...mailbox === undefined ? {} : { mailbox },
    ...description === undefined ? {} : { description }
  }
}

/** A4: 202, and the URI at which the publisher finds the receipt. */
export const postReceipt = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  const receipt = receiptOf(yield* readDocument(call, "receipt"))
  if (typeof receipt === "string") return yield* httpError("unprocessable", receipt)
  const reply = yield* askAsReader(
    service,
    call,
    to,
    (access) => ({
      _tag: "Receipt",
      access,
      value: JSON.stringify(receipt),
      ...call.key === undefined ? {} : { requestId: call.ids.id("receipt") }
    })
  )
  const { n } = expectReply(reply, "Received")
  const href = absoluteUri(service, `/content/${to.id}/receipts/${n}`)
  return viewAnswer({ title: "Receipt accepted", tree: element("receipt", { href }) }, {
    status: 202,
    headers: [["Location", href]]
  })
})

/** The path of the content as requested: links keep the secret of the edit URI. */
const basePath = (call: Call): string => {
  const secret = call.parameters.secret("content")
  return `/content/${call.parameters.get("content")}${secret === undefined ? "" : `~${secret}`}`
}

/** A receipt, below the path of its content. */
export const receiptElement = (service: Service, path: string, { n, value }: LogItem): Element => {
  const { atMs, value: text } = decodeReceipt(value)
  // Written by `postReceipt` alone.
  const { description, mailbox, status } = JSON.parse(text) as Receipt
  return element(
    "receipt",
    {
      href: absoluteUri(service, `${path}/receipts/${n}`),
      received: new Date(atMs).toISOString(),
      status,
      mailbox
    },
    optionalElement("description", description)
  )
}

/** All receipts of a message, oldest first; `receiptsMax` bounds their number. */
export const getReceipts = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  yield* requireEditor(service, call, to)
  const items = yield* service.system.read(to, 1, receiptsMax)
  const tree = element(
    "receipts",
    { href: contentUri(service, to.id) },
    ...items.map((item) => receiptElement(service, basePath(call), item))
  )
  return viewAnswer({ title: "Receipts", tree })
})

/** One receipt. */
export const getReceipt = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  yield* requireEditor(service, call, to)
  const number = call.parameters.get("receipt")
  const n = /^[1-9]\d{0,9}$/.test(number) ? Number(number) : 0
  const [item] = n === 0 ? [] : yield* service.system.read(to, n, 1)
  if (item === undefined || item.n !== n) return yield* httpError("not-found")
  return viewAnswer({ title: "Receipt", tree: receiptElement(service, basePath(call), item) })
})
