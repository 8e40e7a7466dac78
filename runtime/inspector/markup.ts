/** Markup of the inspector's pages: templates that escape whatever is put into them. */

/** Only {@link html} makes it. */
export interface Markup {
  readonly _tag: "Markup"
  readonly text: string
}

export type MarkupValue = Markup | string | number | undefined | ReadonlyArray<MarkupValue>

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "\"": "&quot;",
  "'": "&#39;"
}

const render = (value: MarkupValue): string => {
  if (value === undefined) return ""
  if (typeof value === "string") return value.replace(/[&<>"']/g, (one) => entities[one] ?? one)
  if (typeof value === "number") return String(value)
  return "text" in value ? value.text : value.map(render).join("")
}

/** Attribute values in a template must be quoted. */
export const html = (
  strings: TemplateStringsArray,
  ...values: ReadonlyArray<MarkupValue>
): Markup => ({
  _tag: "Markup",
  text: strings.reduce((text, part, at) => text + render(values[at - 1]) + part)
})
