/** Forms that work without a script; every control has a label. */
import { type Html, html, nothing } from "./template.ts"

/** One control of a form. `type` is an input type, `textarea` or `select`. */
export interface Control {
  readonly name: string
  readonly label: string
  readonly type?:
    | "text"
    | "url"
    | "password"
    | "number"
    | "search"
    | "textarea"
    | "select"
    | "checkbox"
    | "hidden"
  readonly value?: string
  readonly hint?: string
  readonly required?: boolean
  readonly maxlength?: number
  readonly pattern?: string
  readonly autocomplete?: string
  readonly options?: ReadonlyArray<readonly [value: string, label: string]>
  /** The share of a line on a wide page; the default is the whole line. */
  readonly width?: "third" | "half"
  /** Lines of a `textarea`, 4 by default; with `code` its font is monospaced. */
  readonly rows?: number
  readonly code?: boolean
  readonly inputmode?: "numeric"
  /** Why the value was rejected: shown beside the field, which gets the focus. */
  readonly fault?: string
}

/** A form; HTML has GET and POST only. */
export interface HtmlForm {
  readonly action: string
  readonly method?: "get" | "post"
  readonly legend?: string
  readonly controls: ReadonlyArray<Control>
  readonly submit: string
  readonly id?: string
  /** The style of a form that deletes something. */
  readonly tone?: "danger"
}

const input = (control: Control, id: string, described: Html): Html => {
  const required = control.required === true ? html` required` : nothing
  const length = control.maxlength === undefined
    ? nothing
    : html` maxlength="${control.maxlength}"`
  const pattern = control.pattern === undefined ? nothing : html` pattern="${control.pattern}"`
  const complete = html` autocomplete="${control.autocomplete ?? "off"}"`
  const value = control.value ?? ""
  const invalid = control.fault === undefined ? nothing : html` aria-invalid="true" autofocus`
  const shared = html`id="${id}" name="${control.name}"${required}${described}${invalid}`
  switch (control.type) {
    case "textarea":
      return html`<textarea ${shared}${length} rows="${control.rows ?? 4}"${
        control.code === true ? html` class="code" spellcheck="false"` : nothing
      }>
${value}</textarea>`
    case "select":
      return html`<select ${shared}>${
        (control.options ?? []).map(([option, label]) =>
          option === value
            ? html`<option value="${option}" selected>${label}</option>`
            : html`<option value="${option}">${label}</option>`
        )
      }</select>`
    case "checkbox":
      return value === "true"
        ? html`<input type="checkbox" value="true" checked ${shared}>`
        : html`<input type="checkbox" value="true" ${shared}>`
    default:
      return html`<input type="${
        control.type ?? "text"
      }" value="${value}" ${shared}${length}${pattern}${complete}${
        control.inputmode === undefined ? nothing : html` inputmode="${control.inputmode}"`
      }>`
  }
}

/** The id of a control's element. */
export const controlId = (form: HtmlForm, { name }: Control): string => `${form.id ?? "f"}-${name}`

const row = (form: HtmlForm, control: Control): Html => {
  if (control.type === "hidden") {
    return html`<input type="hidden" name="${control.name}" value="${control.value ?? ""}">`
  }
  const { fault, hint, label, width } = control
  const id = controlId(form, control)
  const about = [
    ...fault === undefined ? [] : [`${id}-fault`],
    ...hint === undefined ? [] : [`${id}-hint`]
  ]
  const described = about.length === 0 ? nothing : html` aria-describedby="${about.join(" ")}"`
  const notes = html`${
    fault === undefined
      ? nothing
      : html`<small id="${id}-fault" class="fault">✗ ${fault}</small>`
  }${hint === undefined ? nothing : html`<small id="${id}-hint">${hint}</small>`}`
  const field = input(control, id, described)
  if (control.type === "checkbox") {
    return html`<p class="check">${field} <label for="${id}">${label}</label>${notes}</p>`
  }
  const part = width === undefined ? nothing : html` class="${width}"`
  return html`<p${part}><label for="${id}">${label}</label>${field}${notes}</p>`
}

/** The markup of a form. */
export const renderForm = (definition: HtmlForm): Html => {
  const { action, controls, legend, method = "post", submit, tone } = definition
  const danger = tone === undefined ? nothing : html` class="${tone}"`
  return html`<form action="${action}" method="${method}">
<fieldset${danger}>${legend === undefined ? nothing : html`<legend>${legend}</legend>`}
${controls.map((control) => row(definition, control))}
<p><button type="submit"${danger}>${submit}</button></p>
</fieldset></form>
`
}

/** The hidden field with the method that a form replaces: HTML has neither PUT nor DELETE. */
export const methodControl = (method: "put" | "delete"): Control => ({
  name: "method",
  label: "",
  type: "hidden",
  value: method
})

/** The form that replaces DELETE of a resource. */
export const deleteForm = (action: string, legend: string, submit = "Remove"): Html =>
  renderForm({
    id: "delete",
    action,
    legend,
    controls: [methodControl("delete")],
    submit,
    tone: "danger"
  })

/** A form of one button; `about` completes its label for screen readers. */
export const renderButton = (
  action: string,
  text: string,
  about: string,
  fields: Readonly<Record<string, string>> = {}
): Html =>
  html`<form action="${action}" method="post">${
    Object.entries(fields).map(([name, value]) =>
      html`<input type="hidden" name="${name}" value="${value}">`
    )
  }<button type="submit" class="small" aria-label="${text} ${about}">${text}</button></form>`

const withValue = (control: Control, value: string | undefined): Control => {
  if (control.type === "hidden") return control
  return { ...control, value: value ?? "" }
}

/** The control of a fault: the first whose name occurs in the fault's text. */
const controlOfFault = (
  controls: ReadonlyArray<Control>,
  fault: string
): Control | undefined => {
  const words = fault.split(/[^A-Za-z0-9_-]+/)
  const matches = controls
    .filter(({ type }) => type !== "hidden")
    .map((control) => ({ control, at: words.indexOf(control.name) }))
    .filter(({ at }) => at >= 0)
    .toSorted((one, other) => one.at - other.at)
  return matches[0]?.control
}

/** The form with its typed values, and the fault beside its field. */
export const redisplayedForm = (
  definition: HtmlForm,
  valueOf: (name: string) => string | undefined,
  fault: string
): HtmlForm => {
  const faulty = controlOfFault(definition.controls, fault)
  return {
    ...definition,
    controls: definition.controls.map((control) => ({
      ...withValue(control, valueOf(control.name)),
      ...control === faulty ? { fault } : {}
    }))
  }
}
