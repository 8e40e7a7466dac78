/** Building forms that work without a script: every control has its label. */

import { html, nothing } from "./template.ts"
import type { Html } from "./template.ts"

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
}

/** A form; HTML knows GET and POST only. */
export interface Form {
  readonly action: string
  readonly method?: "get" | "post"
  readonly legend?: string
  readonly controls: ReadonlyArray<Control>
  readonly submit: string
  readonly id?: string
}

const input = (control: Control, id: string, described: Html): Html => {
  const required = control.required === true ? html` required` : nothing
  const length = control.maxlength === undefined
    ? nothing
    : html` maxlength="${control.maxlength}"`
  const pattern = control.pattern === undefined ? nothing : html` pattern="${control.pattern}"`
  const complete = html` autocomplete="${control.autocomplete ?? "off"}"`
  const value = control.value ?? ""
  const shared = html`id="${id}" name="${control.name}"${required}${described}`
  switch (control.type) {
    case "textarea":
      return html`<textarea ${shared}${length} rows="4">${value}</textarea>`
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
      }" value="${value}" ${shared}${length}${pattern}${complete}>`
  }
}

const row = (form: Form, control: Control): Html => {
  if (control.type === "hidden") {
    return html`<input type="hidden" name="${control.name}" value="${control.value ?? ""}">`
  }
  const id = `${form.id ?? "f"}-${control.name}`
  const described = control.hint === undefined ? nothing : html` aria-describedby="${id}-hint"`
  const hint = control.hint === undefined
    ? nothing
    : html`<small id="${id}-hint">${control.hint}</small>`
  const field = input(control, id, described)
  return control.type === "checkbox"
    ? html`<p class="check">${field} <label for="${id}">${control.label}</label>${hint}</p>`
    : html`<p><label for="${id}">${control.label}</label>${field}${hint}</p>`
}

/** The markup of a form. */
export const form = (definition: Form): Html =>
  html`<form action="${definition.action}" method="${definition.method ?? "post"}">
<fieldset>${definition.legend === undefined ? nothing : html`<legend>${definition.legend}</legend>`}
${definition.controls.map((control) => row(definition, control))}
<p><button type="submit">${definition.submit}</button></p>
</fieldset></form>
`
