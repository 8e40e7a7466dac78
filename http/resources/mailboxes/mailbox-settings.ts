/** The mailbox document, read and written (protocol §1.2). */
import { type OwnerSettings, parseDuration } from "../../../actors/mailbox/index.ts"
import { childText, type Element, element, failure, isText, optionalElement, type Result,
  success } from "../../formats/xml/index.ts"
import { titleCharsMax } from "../../limits.ts"
import type { HttpSettings, RequestInput } from "../../pipeline/index.ts"

/** A field of a document or form by its name; undefined when it is absent or empty. */
export type FieldReader = (name: string) => string | undefined

/** The fields of a mailbox document; its title may also be the attribute of a listing. */
export const fieldsOf = (input: RequestInput): FieldReader => (name) => {
  if (input._tag === "Form") return input.fields.get(name)?.trim() || undefined
  const attribute = name === "title" ? input.root.attributes[name] : undefined
  return (childText(input.root, name) ?? attribute)?.trim() || undefined
}

const parseOption = <Value extends string>(
  field: FieldReader,
  name: string,
  values: readonly [Value, ...ReadonlyArray<Value>]
): Result<Value, string> => {
  const text = field(name)
  const found = text === undefined ? values[0] : values.find((value) => value === text)
  return found === undefined
    ? failure(`${name} must be one of ${values.join(", ")}`)
    : success(found)
}

/** The title in a field, or its fault. */
export const parseTitle = (
  title: string | undefined
): Result<{ readonly title?: string }, string> => {
  if (title === undefined) return success({})
  return title.length > titleCharsMax || !isText(title)
    ? failure(`title may have ${titleCharsMax} characters at the most, none of them control`)
    : success({ title })
}

const fetchLimitOf = (
  field: FieldReader,
  bytesMax: number
): Result<{ readonly fetchLimitBytes?: number }, string> => {
  const text = field("fetch-limit")
  if (text === undefined) return success({})
  return /^\d{1,15}$/.test(text) && Number(text) <= bytesMax
    ? success({ fetchLimitBytes: Number(text) })
    : failure(`fetch-limit must be a number of bytes, at most ${bytesMax}`)
}

const dayMs = 86_400_000

/** The default retention as a duration (ISO 8601). */
export const defaultRetention = ({ retentionMs }: HttpSettings): string =>
  retentionMs % dayMs === 0 ? `P${retentionMs / dayMs}D` : `PT${Math.ceil(retentionMs / 1000)}S`

/** The settings of a document or form, with defaults for absent ones; or the fault of a field. */
export const parseSettings = (
  field: FieldReader,
  defaults: HttpSettings
): Result<OwnerSettings, string> => {
  const title = parseTitle(field("title"))
  if (!title.ok) return title
  const deposit = parseOption(field, "deposit", ["anyone", "accounts"])
  if (!deposit.ok) return deposit
  const fetch = parseOption(field, "fetch", ["never", "eager"])
  if (!fetch.ok) return fetch
  const receipts = parseOption(field, "receipts", ["none", "received", "retrieved"])
  if (!receipts.ok) return receipts
  const limit = fetchLimitOf(field, defaults.contentBytesMax)
  if (!limit.ok) return limit
  const retention = field("retention") ?? defaultRetention(defaults)
  const retentionMs = parseDuration(retention)
  if (retentionMs === undefined) {
    return failure("retention must be a duration of ISO 8601 such as P30D, 100 years at the most")
  }
  return success({
    ...title.value,
    deposit: deposit.value,
    retention,
    retentionMs,
    fetch: fetch.value,
    ...limit.value,
    receipts: receipts.value
  })
}

/** The settings as elements, without the title. */
export const settingsElements = (settings: OwnerSettings): ReadonlyArray<Element> =>
  [
    element("deposit", {}, settings.deposit),
    element("retention", {}, settings.retention),
    element("fetch", {}, settings.fetch),
    optionalElement("fetch-limit", settings.fetchLimitBytes),
    element("receipts", {}, settings.receipts)
  ].filter((child) => child !== undefined)

/** The secrets of a mailbox; only the answer that creates them has them. */
export interface MailboxSecretUris {
  readonly password: string
  readonly sharedHref: string
}

/** The mailbox document. */
export const mailboxDocument = (
  href: string,
  settings: OwnerSettings | undefined,
  secrets?: MailboxSecretUris
): Element =>
  element(
    "mailbox",
    { href },
    settings === undefined ? undefined : element("title", {}, settings.title),
    optionalElement("password", secrets?.password),
    secrets === undefined ? undefined : element("shared", { href: secrets.sharedHref }),
    ...settings === undefined ? [] : settingsElements(settings)
  )
