/** Input of cabinets: a document or the form of a page, checked. */
import { Effect } from "effect"
import type { CabinetContent, CabinetMailbox, CabinetQuery } from "../../../actors/cabinet/index.ts"
import { cabinetMailboxesMax, linksUnder } from "../../../actors/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { childOf, childrenOf, failure, isText, type Result,
  success } from "../../formats/xml/index.ts"
import { containsCharsMax, uriCharsMax } from "../../limits.ts"
import { type HttpError, httpError, type RequestInput, type Service } from "../../pipeline/index.ts"
import { fieldsOf, readTitle } from "../mailboxes/index.ts"
import { timeOf } from "./cabinet-cursor.ts"

/** The fields of a document or form, unchecked; an empty field is undefined. */
interface CabinetFields {
  readonly title: string | undefined
  readonly hrefs: ReadonlyArray<string>
  readonly contains: string | undefined
  readonly since: string | undefined
}

const cabinetFieldsOf = (input: RequestInput): CabinetFields => {
  const title = fieldsOf(input)("title")
  if (input._tag === "Form") {
    const { fields } = input
    return {
      title,
      // The form of the page has one field for all mailboxes, one a line.
      hrefs: fields.all("mailbox").flatMap((text) => text.split(/\s+/)).filter((one) => one !== ""),
      contains: fields.get("contains")?.trim() || undefined,
      since: fields.get("since")?.trim() || undefined
    }
  }
  const { contains, since } = childOf(input.root, "query")?.attributes ?? {}
  return {
    title,
    hrefs: childrenOf(input.root, "mailbox").map((one) => one.attributes["href"]?.trim() ?? ""),
    contains: contains?.trim() || undefined,
    since: since?.trim() || undefined
  }
}

/** An invalid href for a message, without a part that could be a secret. */
const redactedHref = (href: string): string => {
  const [start = ""] = href.split("~")
  if (href === "" || !isText(start)) return "it has no href"
  return start.length > uriCharsMax ? "its href is too long" : `not ${start}`
}

/** The mailboxes of these URIs without duplicates; a URI with a secret precedes one without. */
const mailboxesOf = (
  service: Service,
  hrefs: ReadonlyArray<string>
): Result<ReadonlyArray<CabinetMailbox>, string> => {
  if (hrefs.length === 0) return failure("a cabinet has one mailbox or more")
  if (hrefs.length > cabinetMailboxesMax) {
    return failure(`a cabinet has ${cabinetMailboxesMax} mailboxes at the most`)
  }
  const { baseUrl } = service.settings
  const { mailboxOf } = linksUnder(baseUrl)
  const mailboxes = new Map<string, CabinetMailbox>()
  for (const [at, href] of hrefs.entries()) {
    const isPath = href.startsWith("/") && !href.startsWith("//")
    const own = href.length > uriCharsMax ? undefined : mailboxOf(isPath ? baseUrl + href : href)
    if (own === undefined) {
      const why = `mailbox ${at + 1} must be the URI of a mailbox of this service`
      return failure(`${why}: ${redactedHref(href)}`)
    }
    const { name, secret } = own
    if (secret !== undefined) mailboxes.set(name, { name, secretHash: secretHash(secret) })
    else if (!mailboxes.has(name)) mailboxes.set(name, { name })
  }
  return success([...mailboxes.values()])
}

const parseQuery = (
  { contains, since }: CabinetFields
): Result<CabinetQuery | undefined, string> => {
  if (contains !== undefined && (contains.length > containsCharsMax || !isText(contains))) {
    return failure(
      `query contains may have ${containsCharsMax} characters at the most, none of them control`
    )
  }
  if (since !== undefined && timeOf(since) === undefined) {
    return failure("query since must be a time (RFC 3339), or the time of an answer of a mailbox")
  }
  if (contains === undefined && since === undefined) return success(undefined)
  return success({
    ...contains === undefined ? {} : { contains },
    ...since === undefined ? {} : { since }
  })
}

/** The contents of a document or form; 422 with the first fault. */
export const contentsOf = Effect.fnUntraced(function*(
  service: Service,
  input: RequestInput
): Effect.fn.Return<CabinetContent, HttpError> {
  const fields = cabinetFieldsOf(input)
  const title = yield* readTitle(fields.title)
  const mailboxes = mailboxesOf(service, fields.hrefs)
  if (!mailboxes.ok) return yield* httpError("unprocessable", mailboxes.fault)
  const query = parseQuery(fields)
  if (!query.ok) return yield* httpError("unprocessable", query.fault)
  return {
    ...title,
    mailboxes: mailboxes.value,
    ...query.value === undefined ? {} : { query: query.value }
  }
})
