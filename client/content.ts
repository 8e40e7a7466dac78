/** Content resources (protocol §1.1): publishing, reading, overwriting, removing, receipts. */
import { type HttpTransport, type JsonObject, linkOf, listOf, locationOf, newIdempotencyKey,
  optionalText, type PostOptions, problemOf, type RequestContentBody, textOf,
  unexpected } from "./transport/index.ts"

/** How to publish content. */
export interface Publishing extends PostOptions {
  /** A media type; `text/plain; charset=utf-8` for a string, a Blob's own, else octets. */
  readonly contentType?: string | undefined
  /** As in `attachment; filename="plan.pdf"`. */
  readonly disposition?: string | undefined
  /** A password of 16 or more visible characters, or `generate` for one by the service. */
  readonly password?: string | undefined
}

/** Published content. The URI `edit` allows overwriting and removing it. */
export interface Published {
  readonly href: string
  /** The secret edit URI, which the service shows only once. */
  readonly edit: string
  /** The message password, if it has one. */
  readonly password: string | undefined
}

/** Content with its response. */
export interface Content {
  readonly href: string
  readonly type: string
  readonly etag: string | undefined
  readonly lengthBytes: number | undefined
  /** Read it once, by `text()`, `arrayBuffer()`, `blob()` or `body`. */
  readonly response: Response
}

/** How to read content. */
export interface ReadContentOptions {
  readonly password?: string | undefined
  /** First and last byte, both inclusive. */
  readonly range?: { readonly from: number; readonly to?: number } | undefined
  readonly signal?: AbortSignal | undefined
}

/** Changes content only if its entity tag is still `ifMatch`. */
export interface WriteCondition {
  readonly ifMatch?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A recipient's report about a message (A4). */
export interface Receipt {
  readonly href: string
  readonly received: string
  readonly status: string
  readonly mailbox: string | undefined
  readonly description: string | undefined
}

const typeOf = (body: RequestContentBody): string => {
  if (typeof body === "string") return "text/plain; charset=utf-8"
  return body instanceof Blob && body.type !== "" ? body.type : "application/octet-stream"
}

/** A1. */
export const publish = async (
  transport: HttpTransport,
  body: RequestContentBody,
  { contentType, disposition, idempotencyKey, password, signal }: Publishing = {}
): Promise<Published> => {
  const response = await transport.text({
    method: "POST",
    uri: "/content",
    headers: {
      "content-type": contentType ?? typeOf(body),
      "content-disposition": disposition,
      "message-password": password,
      "idempotency-key": idempotencyKey ?? newIdempotencyKey()
    },
    body,
    timeoutMs: null,
    signal
  })
  const { headers } = response
  return {
    href: locationOf(response),
    edit: linkOf(headers.get("link"), "edit") ?? unexpected("no edit link"),
    password: headers.get("message-password") ?? (password === "generate" ? undefined : password)
  }
}

/** A3, at this service or any other. Only this service receives the account's credentials. */
export const getContent = (
  transport: HttpTransport,
  href: string,
  { password, range, signal }: ReadContentOptions = {}
): Promise<Content> =>
  transport.send({
    method: "GET",
    uri: href,
    // Content has any type; a refusal is JSON.
    accept: "application/problem+json, */*;q=0.9",
    headers: {
      "message-password": password,
      range: range === undefined ? undefined : `bytes=${range.from}-${range.to ?? ""}`
    },
    redirect: password === undefined ? "follow" : "error",
    signal
  }, (response) => {
    const { headers } = response
    const length = headers.get("content-length")
    return {
      href,
      type: headers.get("content-type") ?? "application/octet-stream",
      etag: headers.get("etag") ?? undefined,
      lengthBytes: length === null ? undefined : Number(length),
      response
    }
  })

/** PUT on the edit URI, or by the owner on the content's URI. Returns the new entity tag. */
export const replaceContent = async (
  transport: HttpTransport,
  edit: string,
  body: RequestContentBody,
  { contentType, disposition, ifMatch, signal }: Publishing & WriteCondition = {}
): Promise<string | undefined> => {
  const { headers } = await transport.text({
    method: "PUT",
    uri: edit,
    headers: {
      "content-type": contentType ?? typeOf(body),
      "content-disposition": disposition,
      "if-match": ifMatch
    },
    body,
    timeoutMs: null,
    signal
  })
  return headers.get("etag") ?? undefined
}

/** DELETE. A resource that is already gone is no failure. */
export const removeResource = (
  transport: HttpTransport,
  uri: string,
  { ifMatch, signal }: WriteCondition = {},
  authorization?: string
): Promise<void> =>
  transport.send({
    method: "DELETE",
    uri,
    accept: "application/json",
    headers: { "if-match": ifMatch },
    acceptedStatuses: [404, 410],
    authorization,
    signal
  }, async (response, attempts) => {
    // After a retry, 404 means that an earlier attempt removed it and its response was lost.
    if (response.status === 404 && attempts === 1) throw await problemOf(response)
  })

const receiptOf = (document: JsonObject): Receipt => ({
  href: textOf(document, "href"),
  received: textOf(document, "received"),
  status: textOf(document, "status"),
  mailbox: optionalText(document, "mailbox"),
  description: optionalText(document, "description")
})

/** The receipts of a message, by its edit URI. */
export const receiptsOf = async (
  transport: HttpTransport,
  edit: string,
  signal?: AbortSignal
): Promise<ReadonlyArray<Receipt>> => {
  const { document } = await transport.json({ method: "GET", uri: `${edit}/receipts`, signal })
  return listOf(document, "receipt").map(receiptOf)
}

/** A4: sends a receipt for a message, and returns the URI of the receipt. */
export const reportReceipt = async (
  transport: HttpTransport,
  href: string,
  receipt: {
    readonly status: "received" | "retrieved" | "problem"
    readonly mailbox?: string | undefined
    readonly description?: string | undefined
    readonly password?: string | undefined
  }
): Promise<string | undefined> => {
  const { password, ...document } = receipt
  const { headers } = await transport.post(href, document, {
    headers: { "message-password": password }
  })
  return headers.get("location") ?? undefined
}
