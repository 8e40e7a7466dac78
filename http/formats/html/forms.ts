/** Forms that work without a script; every control has a label. */
import { docsQueryCharsMax } from "../../limits.ts"
import { withoutForbidden } from "../xml/index.ts"
import { icon, type IconName } from "./icon.ts"
import { attribute, type Html, html, link, nothing } from "./template.ts"

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
  readonly options?: ReadonlyArray<readonly [value: string, label: string]>
  /** The value of a checked `checkbox`, `true` by default; boxes of one name have others. */
  readonly option?: string
  /** The share of a line on a wide page; the default is the whole line. */
  readonly width?: "third" | "half"
  /** Lines of a `textarea`, 4 by default; with `code` its font is monospaced. */
  readonly rows?: number
  readonly code?: boolean
  /** A `textarea` of addresses, one a line, which `/chips.js` shows as chips. */
  readonly chips?: boolean
  readonly inputmode?: "numeric"
  /** What a browser may fill in (WHATWG HTML §4.10.18.7); nothing by default. */
  readonly autocomplete?: "username" | "current-password"
  /** It is among the controls that `foldedAs` of its form opens. */
  readonly isFolded?: boolean
  /** Why the value was rejected: shown beside the field, which gets the focus. */
  readonly fault?: string
  /** What somebody has saved since the page showed the form, where it is not the field's value. */
  readonly saved?: string
}

/** A form; HTML has GET and POST only. */
export interface HtmlForm {
  readonly action: string
  readonly method?: "get" | "post"
  readonly legend?: string
  /** What leads to more about the form, above its controls. */
  readonly help?: Html
  readonly controls: ReadonlyArray<Control>
  /** What opens the controls that few people need. */
  readonly foldedAs?: string
  readonly submit: string
  readonly id?: string
  /** The style of a form that deletes something. */
  readonly tone?: "danger"
  /** A way out beside the button. */
  readonly instead?: { readonly href: string; readonly text: string }
}

const input = (control: Control, id: string, described: Html): Html => {
  const { code = false, fault, maxlength, name, required, type = "text", value = "" } = control
  const isFaulty = fault !== undefined
  const shared = html`id="${id}" name="${name}"${attribute("required", required)}${described}${
    attribute("aria-invalid", isFaulty ? "true" : undefined)
  }${attribute("autofocus", isFaulty)}`
  const length = attribute("maxlength", maxlength)
  switch (type) {
    case "textarea":
      return html`<textarea ${shared}${length} rows="${control.rows ?? 4}"${
        attribute("class", code && "code")
      }${attribute("spellcheck", code && "false")}${attribute("data-chips", control.chips)}>
${value}</textarea>`
    case "select":
      return html`<select ${shared}>${
        (control.options ?? []).map(([option, label]) =>
          html`<option value="${option}"${
            attribute("selected", option === value)
          }>${label}</option>`
        )
      }</select>`
    case "checkbox": {
      const { option = "true" } = control
      return html`<input type="checkbox" value="${option}"${
        attribute("checked", value === option)
      } ${shared}>`
    }
    default:
      return html`<input type="${type}" value="${value}" ${shared}${length}${
        attribute("pattern", control.pattern)
      } autocomplete="${control.autocomplete ?? "off"}"${
        attribute("inputmode", control.inputmode)
      }>`
  }
}

const row = (form: HtmlForm, control: Control): Html => {
  if (control.type === "hidden") {
    return html`<input type="hidden" name="${control.name}" value="${control.value ?? ""}">`
  }
  const { fault, hint, label, option, saved, width } = control
  const id = [form.id ?? "f", control.name, ...option === undefined ? [] : [option]].join("-")
  const about = [
    ...fault === undefined ? [] : [`${id}-fault`],
    ...saved === undefined ? [] : [`${id}-saved`],
    ...hint === undefined ? [] : [`${id}-hint`]
  ]
  const described = attribute("aria-describedby", about.join(" ") || undefined)
  const notes = html`${
    fault !== undefined && html`<small id="${id}-fault" class="fault">✗ ${fault}</small>`
  }${
    saved !== undefined &&
    html`<small id="${id}-saved" class="saved">Saved now: ${
      saved === "" ? "nothing" : saved
    }</small>`
  }${hint !== undefined && html`<small id="${id}-hint">${hint}</small>`}`
  const field = input(control, id, described)
  if (control.type === "checkbox") {
    return html`<p class="check">${field} <label for="${id}">${label}</label>${notes}</p>`
  }
  return html`<p${
    attribute("class", width)
  }><label for="${id}">${label}</label>${field}${notes}</p>`
}

/**
 * What a form is to its page: its one main action, whose button is filled; another one; or one that
 * few readers need, which its legend opens.
 */
export type FormRank = "primary" | "secondary" | "rare"

/** The controls that are folded, which are open where something is in one of them. */
const foldedRows = (form: HtmlForm): Html => {
  const folded = form.controls.filter(({ isFolded }) => isFolded === true)
  if (folded.length === 0) return nothing
  const isOpen = folded.some(({ fault, value = "" }) => fault !== undefined || value !== "")
  return html`<details${attribute("open", isOpen)}><summary>${form.foldedAs ?? "More"}</summary>
${folded.map((control) => row(form, control))}</details>`
}

/** The markup of a form. */
export const renderForm = (definition: HtmlForm, rank: FormRank = "primary"): Html => {
  const { action, controls, help, instead, legend = "", method = "post", submit, tone } = definition
  const isFolded = rank === "rare" && legend !== ""
  const style = tone ?? (rank === "primary" ? undefined : "secondary")
  const form = html`<form action="${action}" method="${method}">
<fieldset${attribute("class", tone)}${attribute("aria-label", isFolded && legend)}>${
    legend !== "" && !isFolded && html`<legend>${legend}</legend>`
  }${help !== undefined && html`<p class="quiet">${help}</p>`}
${controls.filter(({ isFolded }) => isFolded !== true).map((control) => row(definition, control))}${
    foldedRows(definition)
  }
<p><button type="submit"${attribute("class", style)}>${submit}</button>${
    instead !== undefined && html` ${link(instead.href, instead.text)}`
  }</p>
</fieldset></form>
`
  return isFolded
    ? html`<details class="rare"><summary>${legend}</summary>
${form}</details>
`
    : form
}

/** The hidden field with the method that a form replaces: HTML has neither PUT nor DELETE. */
export const methodControl = (method: "put" | "delete"): Control => ({
  name: "method",
  label: "",
  type: "hidden",
  value: method
})

/**
 * The hidden field with the version of what the form shows: a form of an older page changes
 * nothing. It is empty where the definition knows no version.
 */
export const versionControl = (version: number | string = ""): Control => ({
  name: "version",
  label: "",
  type: "hidden",
  value: String(version)
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

/** What a button sends, and the icon before its text. */
interface ButtonParts {
  readonly fields?: Readonly<Record<string, string>>
  readonly icon?: IconName
  readonly method?: "get"
  /** The list on which `/list.js` removes instead. */
  readonly list?: string | undefined
}

/** A form of one button; `about` completes its label for screen readers. */
export const renderButton = (
  action: string,
  text: string,
  about: string,
  { fields = {}, icon: sign, list, method }: ButtonParts = {}
): Html =>
  html`<form action="${action}" method="${method ?? "post"}"${attribute("data-list", list)}>${
    Object.entries(fields).map(([name, value]) =>
      html`<input type="hidden" name="${name}" value="${value}">`
    )
  }<button type="submit" class="small" aria-label="${text} ${about}">${
    sign !== undefined && icon(sign)
  }${text}</button></form>`

/**
 * The search of the documentation. With `isLive` its page shows by `/search.js` what is found while
 * the reader types.
 */
export const renderDocsSearch = (query = "", isLive = false): Html =>
  html`<form class="find" action="/docs" method="get" role="search"${
    attribute("data-search", isLive)
  }>
<p><input type="search" name="q" value="${query}" maxlength="${docsQueryCharsMax}"
aria-label="Search the documentation" placeholder="Search" autocomplete="off">
<button type="submit" class="small">${icon("search")}Search</button></p></form>
`

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

/** What the client typed in a field, or whether it checked this box. */
const typedValue = ({ option }: Control, values: ReadonlyArray<string>): string =>
  withoutForbidden(values.find((value) => option === undefined || value === option) ?? "")

/** A fault beside its field, where the reader sees the field's label and not its name. */
const labeledFault = ({ label, name }: Control, fault: string): string =>
  fault.startsWith(`${name} `) ? `“${label}”${fault.slice(name.length)}` : fault

/** All values of a field of a form that was sent, by its name. */
type SentValues = (name: string) => ReadonlyArray<string>

/** The control with what was typed in it. No page repeats a password. */
const withTyped = (control: Control, valuesOf: SentValues): Control =>
  control.type === "hidden" || control.type === "password"
    ? control
    : { ...control, value: typedValue(control, valuesOf(control.name)) }

/** The form with its typed values, and the fault beside its field. */
export const redisplayedForm = (
  definition: HtmlForm,
  valuesOf: SentValues,
  fault: string
): HtmlForm => {
  const faulty = controlOfFault(definition.controls, fault)
  const versionName = versionControl().name
  return {
    ...definition,
    controls: definition.controls.map((control) => ({
      ...control.name === versionName && control.type === "hidden"
        // What the page has shown is older than what the service knows now.
        ? { ...control, value: typedValue(control, valuesOf(versionName)) }
        : withTyped(control, valuesOf),
      ...control === faulty ? { fault: labeledFault(control, fault) } : {}
    }))
  }
}

/** The value of a field for people: that of a list by its label. */
const valueForPeople = ({ options, type, value = "" }: Control): string =>
  type === "select" ? options?.find(([option]) => option === value)?.[1] ?? value : value

const isState = ({ type }: Control): boolean =>
  type !== "hidden" && type !== "password" && type !== "checkbox"

/** Browsers send the line ends of a `textarea` as CR LF. */
const sameText = (one: string, other: string): boolean =>
  one.replace(/\r\n/g, "\n").trim() === other.replace(/\r\n/g, "\n").trim()

/** The form of what is saved now, with the typed values, and beside each what differs from it. */
export const outdatedForm = (current: HtmlForm, valuesOf: SentValues): HtmlForm => ({
  ...current,
  controls: current.controls.map((control) => {
    const typed = withTyped(control, valuesOf)
    return isState(control) && !sameText(typed.value ?? "", control.value ?? "")
      ? { ...typed, saved: valueForPeople(control) }
      : typed
  })
})
