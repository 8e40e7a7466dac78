/**
 * HTML templates that escape their interpolations. Only uses of `raw` need review.
 */

/** Markup. Only `html` and `raw` create it. */
export interface Html {
  readonly _tag: "Html"
  readonly text: string
}

/** The values that a template accepts. */
export type Interpolation =
  | Html
  | string
  | number
  | undefined
  | false
  | ReadonlyArray<Interpolation>

/** Declares text to be HTML. Every use says why it is safe. */
export const raw = (text: string): Html => ({ _tag: "Html", text })

export const nothing: Html = raw("")

/** Text for element content and for attribute values in double or single quotes. */
const escapeHtml = (text: string): string =>
  /[&<>"']/.test(text)
    ? text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
      .replace(/"/g, "&quot;").replace(/'/g, "&#39;")
    : text

const isList = (value: Interpolation): value is ReadonlyArray<Interpolation> => Array.isArray(value)

const render = (value: Interpolation): string => {
  if (value === undefined || value === false) return ""
  if (typeof value === "string") return escapeHtml(value)
  if (typeof value === "number") return String(value)
  return isList(value) ? value.map(render).join("") : value.text
}

/** Markup with escaped interpolations. Attribute values must be quoted in the template. */
export const html = (
  strings: TemplateStringsArray,
  ...values: ReadonlyArray<Interpolation>
): Html => {
  let text = strings[0] ?? ""
  for (let index = 0; index < values.length; index += 1) {
    text += render(values[index]) + (strings[index + 1] ?? "")
  }
  return raw(text) // every part is a literal of the source or went through `render`
}

/** An attribute with a leading space; `true` has no value, undefined and false no attribute. */
export const attribute = (name: string, value: string | number | boolean | undefined): Html => {
  if (value === undefined || value === false) return nothing
  return raw(value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`) // escaped
}

const safeReference = /^(?:https?:\/\/|mailto:|\/(?!\/)|[?#]|\.{1,2}\/)/i

/** Whether a URI may be a link: http, https, mailto or this origin; never `javascript:`. */
export const isLinkable = (uri: string): boolean =>
  safeReference.test(uri) && !/[\u0000- "<>\\]/.test(uri)

/** A link, or only its text if `isLinkable` rejects the URI. */
export const link = (uri: string, text: string = uri, rel?: string): Html =>
  isLinkable(uri)
    ? html`<a href="${uri}"${attribute("rel", rel)}>${text}</a>`
    : html`${text}`
