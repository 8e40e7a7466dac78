/** The mailbox document, read and written (protocol §1.2). */
import { Effect } from "effect"
import { type OwnerSettings, parseDuration,
  type WebhookTemplates } from "../../../actors/mailbox/index.ts"
import { childText, type Element, element, isText,
  optionalElement } from "../../formats/xml/index.ts"
import { titleCharsMax, webhookTemplateCharsMax } from "../../limits.ts"
import { type HttpError, type HttpSettings, type RequestInput,
  unprocessable } from "../../pipeline/index.ts"
import { isTemplate, senderIn } from "./webhook-template.ts"

/** A field of a document or form by its name; undefined when it is absent or empty. */
export type FieldReader = (name: string) => string | undefined

/** The fields of a mailbox document; its title may also be the attribute of a listing. */
export const fieldsOf = (input: RequestInput): FieldReader => (name) => {
  if (input._tag === "Form") return input.fields.get(name)?.trim() || undefined
  const attribute = name === "title" ? input.root.attributes[name] : undefined
  return (childText(input.root, name) ?? attribute)?.trim() || undefined
}

const readOption = <Value extends string>(
  field: FieldReader,
  name: string,
  values: readonly [Value, ...ReadonlyArray<Value>]
): Effect.Effect<Value, HttpError> => {
  const text = field(name)
  const found = text === undefined ? values[0] : values.find((value) => value === text)
  return found === undefined
    ? unprocessable(`${name} must be one of ${values.join(", ")}`)
    : Effect.succeed(found)
}

/** The title in a field; 422 for an invalid one. */
export const readTitle = (
  title: string | undefined
): Effect.Effect<{ readonly title?: string }, HttpError> => {
  if (title === undefined) return Effect.succeed({})
  return title.length > titleCharsMax || !isText(title)
    ? unprocessable(`title may have ${titleCharsMax} characters at the most, none of them control`)
    : Effect.succeed({ title })
}

const readFetchLimit = (
  field: FieldReader,
  bytesMax: number
): Effect.Effect<{ readonly fetchLimitBytes?: number }, HttpError> => {
  const text = field("fetch-limit")
  if (text === undefined) return Effect.succeed({})
  return /^\d{1,15}$/.test(text) && Number(text) <= bytesMax
    ? Effect.succeed({ fetchLimitBytes: Number(text) })
    : unprocessable(`fetch-limit must be a number of bytes, at most ${bytesMax}`)
}

/** Where each template of webhooks is in the mailbox document. */
const webhookFields = {
  description: "webhook",
  link: "webhook-link",
  priority: "webhook-priority",
  tags: "webhook-tags"
} as const

const readTemplate = Effect.fnUntraced(function*(
  field: FieldReader,
  name: string
): Effect.fn.Return<string | undefined, HttpError> {
  const template = field(name)
  if (template === undefined) return undefined
  if (template.length > webhookTemplateCharsMax || !isText(template)) {
    return yield* unprocessable(
      `${name} may have ${webhookTemplateCharsMax} characters at the most, none of them control`
    )
  }
  if (!isTemplate(template)) {
    return yield* unprocessable(
      `${name} has a brace outside a pointer: write {/pointer} or {/one|/other}`
    )
  }
  return template
})

/** The templates of webhooks in a document or form, if there is one; 422 for an invalid one. */
export const readWebhookTemplates = Effect.fnUntraced(function*(
  field: FieldReader
): Effect.fn.Return<{ readonly webhook?: WebhookTemplates }, HttpError> {
  const description = yield* readTemplate(field, webhookFields.description)
  const link = yield* readTemplate(field, webhookFields.link)
  const priority = yield* readTemplate(field, webhookFields.priority)
  const tags = yield* readTemplate(field, webhookFields.tags)
  if ([description, link, priority, tags].every((one) => one === undefined)) return {}
  return {
    webhook: {
      description: description === undefined ? "" : senderIn(description) ?? description,
      ...link === undefined ? {} : { link },
      ...priority === undefined ? {} : { priority },
      ...tags === undefined ? {} : { tags }
    }
  }
})

const dayMs = 86_400_000

/** The default retention as a duration (ISO 8601). */
export const defaultRetention = ({ retentionMs }: HttpSettings): string =>
  retentionMs % dayMs === 0 ? `P${retentionMs / dayMs}D` : `PT${Math.ceil(retentionMs / 1000)}S`

/** The settings of a document or form, with defaults for absent ones; 422 for an invalid one. */
export const readSettings = Effect.fnUntraced(function*(
  field: FieldReader,
  defaults: HttpSettings
): Effect.fn.Return<OwnerSettings, HttpError> {
  const retention = field("retention") ?? defaultRetention(defaults)
  const retentionMs = parseDuration(retention)
  if (retentionMs === undefined) {
    return yield* unprocessable(
      "retention must be a duration of ISO 8601 such as P30D, 100 years at the most"
    )
  }
  return {
    ...yield* readTitle(field("title")),
    deposit: yield* readOption(field, "deposit", ["anyone", "accounts"]),
    retention,
    retentionMs,
    fetch: yield* readOption(field, "fetch", ["never", "eager"]),
    ...yield* readFetchLimit(field, defaults.contentBytesMax),
    receipts: yield* readOption(field, "receipts", ["none", "received", "retrieved"]),
    ...yield* readWebhookTemplates(field)
  }
})

/** The settings as elements, without the title. */
export const settingsElements = (settings: OwnerSettings): ReadonlyArray<Element> =>
  [
    element("deposit", {}, settings.deposit),
    element("retention", {}, settings.retention),
    element("fetch", {}, settings.fetch),
    optionalElement("fetch-limit", settings.fetchLimitBytes),
    element("receipts", {}, settings.receipts),
    optionalElement(webhookFields.description, settings.webhook?.description || undefined),
    optionalElement(webhookFields.link, settings.webhook?.link),
    optionalElement(webhookFields.priority, settings.webhook?.priority),
    optionalElement(webhookFields.tags, settings.webhook?.tags)
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
