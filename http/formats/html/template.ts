/**
 * HTML by construction: a template that escapes what is put into it, so that forgetting to escape
 * is impossible and only `raw` has to be looked at.
 */
/** Text that is HTML already. Only `html` and `raw` make it. */
export interface Html {
  readonly _tag: "Html"
  readonly text: string
}

/** What may stand in a template: markup, text, numbers, lists of them, or nothing. */
export type Interpolation =
  | Html
  | string
  | number
  | undefined
  | false
  | ReadonlyArray<Interpolation>

/** Declares text to be HTML. Every use says why that is true. */
export const raw = (text: string): Html => ({ _tag: "Html", text })

export const nothing: Html = raw("")

/** Text for element content and for attribute values in double or single quotes. */
export const escapeHtml = (text: string): string =>
  /[&<>"']/.test(text)
    ? text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
      .replace(/"/g, "&quot;").replace(/'/g, "&#39;")
    : text

const isList = (value: Interpolation): value is ReadonlyArray<Interpolation> => Array.isArray(value)

const written = (value: Interpolation): string => {
  if (value === undefined || value === false) return ""
  if (typeof value === "string") return escapeHtml(value)
  if (typeof value === "number") return String(value)
  return isList(value) ? value.map(written).join("") : value.text
}

/** Markup with escaped interpolations. Attribute values must be quoted in the template. */
export const html = (
  strings: TemplateStringsArray,
  ...values: ReadonlyArray<Interpolation>
): Html => {
  let text = strings[0] ?? ""
  for (let index = 0; index < values.length; index += 1) {
    text += written(values[index]) + (strings[index + 1] ?? "")
  }
  return raw(text) // every part is a literal of the source or went through `written`
}

const safeReference = /^(?:https?:\/\/|mailto:|\/(?!\/)|[?#]|\.{1,2}\/)/i

/** Whether a URI may become a link: http, https, mailto or of this origin; never `javascript:`. */
export const isLinkable = (uri: string): boolean =>
  safeReference.test(uri) && !/[\u0000- "<>\\]/.test(uri)

/** A link, or the bare text when the URI is none that may be followed. */
export const link = (uri: string, text: string = uri, rel?: string): Html =>
  isLinkable(uri)
    ? rel === undefined
      ? html`<a href="${uri}">${text}</a>`
      : html`<a href="${uri}" rel="${rel}">${text}</a>`
    : html`${text}`
