/** Input of cabinets: a document or the form of a page, checked. */
import { Effect } from "effect"
import type { CabinetContent, CabinetMailbox, CabinetQuery } from "../../../actors/cabinet/index.ts"
import { cabinetMailboxesMax, linksUnder } from "../../../actors/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { childOf, childrenOf, isText } from "../../formats/xml/index.ts"
import { containsCharsMax, uriCharsMax } from "../../limits.ts"
import { type HttpError, type RequestInput, type Service,
  unprocessable } from "../../pipeline/index.ts"
import { fieldsOf, readTitle } from "../mailboxes/index.ts"
import { timeOf } from "./cabinet-cursor.ts"

/** The fields of a document or form, unchecked. */
interface CabinetFields {
  readonly hrefs: ReadonlyArray<string>
  readonly contains: string | undefined
  readonly since: string | undefined
}

const cabinetFieldsOf = (input: RequestInput): CabinetFields => {
  if (input._tag === "Form") {
    const { fields } = input
    // The form of the page has one field for all mailboxes, one a line.
    const hrefs = fields.all("mailbox").flatMap((text) => text.split(/\s+/))
    return {
      hrefs: hrefs.filter((one) => one !== ""),
      contains: fields.get("contains"),
      since: fields.get("since")
    }
  }
  const { contains, since } = childOf(input.root, "query")?.attributes ?? {}
  const hrefs = childrenOf(input.root, "mailbox").map(({ attributes }) => attributes["href"] ?? "")
  return { hrefs: hrefs.map((href) => href.trim()), contains, since }
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
): Effect.Effect<ReadonlyArray<CabinetMailbox>, HttpError> => {
  if (hrefs.length === 0) return unprocessable("a cabinet has one mailbox or more")
  if (hrefs.length > cabinetMailboxesMax) {
    return unprocessable(`a cabinet has ${cabinetMailboxesMax} mailboxes at the most`)
  }
  const { baseUrl } = service.settings
  const { mailboxOf } = linksUnder(baseUrl)
  const mailboxes = new Map<string, CabinetMailbox>()
  for (const [at, href] of hrefs.entries()) {
    const isPath = href.startsWith("/") && !href.startsWith("//")
    const own = href.length > uriCharsMax ? undefined : mailboxOf(isPath ? baseUrl + href : href)
    if (own === undefined) {
      const why = `mailbox ${at + 1} must be the URI of a mailbox of this service`
      return unprocessable(`${why}: ${redactedHref(href)}`)
    }
    const { name, secret } = own
    if (secret !== undefined) mailboxes.set(name, { name, secretHash: secretHash(secret) })
    else if (!mailboxes.has(name)) mailboxes.set(name, { name })
  }
  return Effect.succeed([...mailboxes.values()])
}

const readQueryOf = (
  fields: CabinetFields
): Effect.Effect<{ readonly query?: CabinetQuery }, HttpError> => {
  const contains = fields.contains?.trim() ?? ""
  const since = fields.since?.trim() ?? ""
  if (contains.length > containsCharsMax || !isText(contains)) {
    return unprocessable(
      `query contains may have ${containsCharsMax} characters at the most, none of them control`
    )
  }
  if (since !== "" && timeOf(since) === undefined) {
    return unprocessable(
      "query since must be a time (RFC 3339), or the time of an answer of a mailbox"
    )
  }
  const query = { ...contains === "" ? {} : { contains }, ...since === "" ? {} : { since } }
  return Effect.succeed(contains === "" && since === "" ? {} : { query })
}

/** The contents of a document or form; 422 with the first fault. */
export const contentsOf = Effect.fnUntraced(function*(
  service: Service,
  input: RequestInput
): Effect.fn.Return<CabinetContent, HttpError> {
  const fields = cabinetFieldsOf(input)
  return {
    ...yield* readTitle(fieldsOf(input)("title")),
    mailboxes: yield* mailboxesOf(service, fields.hrefs),
    ...yield* readQueryOf(fields)
  }
})
