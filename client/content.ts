/** Content resources (protocol §1.1): publishing, reading, overwriting, removing, receipts. */
import { type HttpTransport, type JsonObject, linkOf, listOf, newKey, optionalText, problemOf,
  type RequestContentBody, textOf, unexpected } from "./transport/index.ts"

/** How content is published. */
export interface Publishing {
  /** A media type; `text/plain; charset=utf-8` for a string, a Blob's own, else octets. */
  readonly contentType?: string | undefined
  /** As in `attachment; filename="plan.pdf"`. */
  readonly disposition?: string | undefined
  /** A password of 16 or more visible characters, or `generate` to have one chosen. */
  readonly password?: string | undefined
  /** Made up by default, so that a repetition publishes nothing twice. */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** What has been published. Whoever knows `edit` can overwrite and remove it. */
export interface Published {
  readonly href: string
  /** The secret edit URI, which is told this once. */
  readonly edit: string
  /** The message password, if it has one. */
  readonly password: string | undefined
}

/** Content as it was read. */
export interface Content {
  readonly href: string
  readonly type: string
  readonly etag: string | undefined
  readonly lengthBytes: number | undefined
  /** The whole answer: `text()`, `arrayBuffer()`, `blob()` or `body`, once. */
  readonly response: Response
}

/** Reading content. */
export interface ReadContentOptions {
  readonly password?: string | undefined
  /** First and last byte, both inclusive. */
  readonly range?: { readonly from: number; readonly to?: number } | undefined
  readonly signal?: AbortSignal | undefined
}

/** Changing content: only when it is still what had this entity tag. */
export interface WriteCondition {
  readonly ifMatch?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** What a recipient reports of a message (A4). */
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
  const { headers } = await transport.text({
    method: "POST",
    uri: "/content",
    headers: {
      "content-type": contentType ?? typeOf(body),
      "content-disposition": disposition,
      "message-password": password,
      "idempotency-key": idempotencyKey ?? newKey()
    },
    body,
    withinMs: null,
    signal
  })
  return {
    href: headers.get("location") ?? unexpected("no Location"),
    edit: linkOf(headers.get("link"), "edit") ?? unexpected("no edit link"),
    password: headers.get("message-password") ?? (password === "generate" ? undefined : password)
  }
}

/** A3, at this service or any other. The account's credentials go to this one only. */
export const getContent = (
  transport: HttpTransport,
  href: string,
  { password, range, signal }: ReadContentOptions = {}
): Promise<Content> =>
  transport.ask({
    method: "GET",
    uri: href,
    // Content comes as what it is; a refusal shall come as JSON.
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

/** PUT on the edit URI, or on the content's by its owner; gives the new entity tag. */
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
    withinMs: null,
    signal
  })
  return headers.get("etag") ?? undefined
}

/** DELETE; what is gone already is no failure. */
export const removeResource = (
  transport: HttpTransport,
  uri: string,
  { ifMatch, signal }: WriteCondition = {},
  authorization?: string
): Promise<void> =>
  transport.ask({
    method: "DELETE",
    uri,
    accept: "application/json",
    headers: { "if-match": ifMatch },
    also: [404, 410],
    authorization,
    signal
  }, async (response, attempts) => {
    // Unknown by now: an earlier attempt has removed it, and its answer was lost.
    if (response.status === 404 && attempts === 1) throw await problemOf(response)
  })

const receiptOf = (document: JsonObject): Receipt => ({
  href: textOf(document, "href"),
  received: textOf(document, "received"),
  status: textOf(document, "status"),
  mailbox: optionalText(document, "mailbox"),
  description: optionalText(document, "description")
})

/** The receipts of a message, for who has its edit URI. */
export const receiptsOf = async (
  transport: HttpTransport,
  edit: string,
  signal?: AbortSignal
): Promise<ReadonlyArray<Receipt>> => {
  const { document } = await transport.json({ method: "GET", uri: `${edit}/receipts`, signal })
  return listOf(document, "receipt").map(receiptOf)
}

/** A4: reports on a message; gives the receipt's URI. */
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
  const { headers } = await transport.text({
    method: "POST",
    uri: href,
    headers: {
      "content-type": "application/json",
      "message-password": password,
      "idempotency-key": newKey()
    },
    body: JSON.stringify(document)
  })
  return headers.get("location") ?? undefined
}
