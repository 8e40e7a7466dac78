/** Receipts (A4): what recipients report of a message, and their listing for the publisher. */
import { Effect } from "effect"
import { decodeReceipt } from "../../../actors/content/index.ts"
import { contentOverheadBytes, parseUrl,
  receiptDescriptionCharsMax } from "../../../actors/index.ts"
import type { Address, LogItem } from "../../../runtime/index.ts"
import { authenticate, authenticateCounted } from "../../auth/index.ts"
import { acceptedBodies } from "../../formats/index.ts"
import { childText, type Element, element, optionalElement } from "../../formats/xml/index.ts"
import { pageCharsMax, pageReadItems, uriCharsMax } from "../../limits.ts"
import { absoluteUri, type Call, contentUri, defineHandler, expectReply, type HandlerFailure,
  httpError, readDocument, readPageRequest, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { askAsReader, contentAddressOf, requireEditor } from "./content-access.ts"
import { chargedNetwork, chargeNetwork } from "./quota.ts"

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
  if (description !== undefined && description.length > receiptDescriptionCharsMax) {
    return `the description has ${description.length} characters, and a receipt has at most ` +
      `${receiptDescriptionCharsMax}: shorten it`
  }
  return {
    status,
    ...mailbox === undefined ? {} : { mailbox },
    ...description === undefined ? {} : { description }
  }
}

/** Whether the credentials are those of an account. Basic may name anybody beside a password. */
const isSurelyAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<boolean, HandlerFailure> {
  return call.identity._tag !== "Basic" && (yield* authenticate(service, call)) !== undefined
})

/**
 * Counts a receipt of a client without an account for the day of its network. What Basic names is
 * authenticated only if there is no room: it may be the password of the message, which must not
 * count as a wrong token each time.
 */
const chargeReceipt = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  value: string
): Effect.fn.Return<void, HandlerFailure> {
  const bytes = Buffer.byteLength(value) + contentOverheadBytes
  const charging = chargeNetwork(service, call, bytes)
  return yield* call.identity._tag !== "Basic" ? charging : Effect.catch(
    charging,
    (failure) =>
      Effect.flatMap(
        authenticateCounted(service, call),
        (account) => account === undefined ? Effect.fail(failure) : Effect.void
      )
  )
})

/**
 * Stores a receipt, and returns its number. One that counts is tried first: a refused receipt
 * counts nothing, nor does a repetition that finds what its first attempt has stored.
 */
const storeReceipt = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  to: Address,
  value: string
): Effect.fn.Return<number, HandlerFailure> {
  const send = (isDryRun: boolean) =>
    askAsReader(service, call, to, (access) => ({
      _tag: "Receipt",
      access,
      value,
      ...call.key === undefined ? {} : { requestId: call.ids.id("receipt") },
      ...isDryRun ? { isDryRun } : {}
    }))
  const isCharged = chargedNetwork(service, call, undefined) !== undefined &&
    !(yield* isSurelyAccount(service, call))
  if (isCharged) {
    const reply = yield* send(true)
    if (reply._tag === "Received") return reply.n
    yield* chargeReceipt(service, call, value)
  }
  return expectReply(yield* send(false), "Received").n
})

/** A4: 202, and the URI at which the publisher finds the receipt. */
export const postReceipt = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  const receipt = receiptOf(yield* readDocument(call, "receipt"))
  if (typeof receipt === "string") return yield* httpError("unprocessable", receipt)
  const n = yield* storeReceipt(service, call, to, JSON.stringify(receipt))
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

/** A page of receipts, and whether there are more. */
interface ReceiptPage {
  readonly items: ReadonlyArray<LogItem>
  readonly hasMore: boolean
}

/** The receipts after a number: `limit` at most, of `pageCharsMax`, at least one. */
const readReceiptPage = Effect.fnUntraced(function*(
  service: Service,
  to: Address,
  after: number,
  limit: number
): Effect.fn.Return<ReceiptPage, HandlerFailure> {
  const items: Array<LogItem> = []
  let chars = 0
  for (let from = after + 1;;) {
    const read = yield* service.system.read(to, from, pageReadItems)
    for (const item of read) {
      chars += item.value.length
      const isFull = items.length === limit || (items.length > 0 && chars > pageCharsMax)
      if (isFull) return { items, hasMore: true }
      items.push(item)
    }
    if (read.length < pageReadItems) return { items, hasMore: false }
    from = (items.at(-1)?.n ?? after) + 1
  }
})

const receiptNumber = /^[1-9]\d{0,9}$/

/** A page of the receipts of a message, oldest first. */
export const getReceipts = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  yield* requireEditor(service, call, to)
  const { after = "0", limit } = yield* readPageRequest(call, (text) => receiptNumber.test(text))
  const { hasMore, items } = yield* readReceiptPage(service, to, Number(after), limit)
  const path = basePath(call)
  const tree = element(
    "receipts",
    { href: contentUri(service, to.id) },
    ...items.map((item) => receiptElement(service, path, item))
  )
  const query = `limit=${limit}&after=${items.at(-1)?.n}`
  const href = absoluteUri(service, `${path}/receipts?${query}`)
  const links = hasMore ? [{ rel: "next", href, title: "Next page" }] : []
  return viewAnswer({ title: "Receipts", tree, links })
})

/** One receipt. */
export const getReceipt = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  yield* requireEditor(service, call, to)
  const number = call.parameters.get("receipt")
  const n = receiptNumber.test(number) ? Number(number) : 0
  const [item] = n === 0 ? [] : yield* service.system.read(to, n, 1)
  if (item === undefined || item.n !== n) return yield* httpError("not-found")
  return viewAnswer({ title: "Receipt", tree: receiptElement(service, basePath(call), item) })
})
