/**
 * The script of fields with several addresses, or names of mailboxes. Without it such a field has
 * one a line.
 */
import { slugCharsMax, uriCharsMax } from "../../../limits.ts"

export const chipsScriptPath = "/chips.js"

/**
 * `/chips.js`: shows each address of a `textarea` with `data-chips` as a chip, with a button that
 * removes it and with its fault. The `textarea` stays in the form, hidden, so that the form sends
 * what it sends without the script. The service checks again.
 */
export const chipsScript = `"use strict"
const field = document.querySelector("textarea[data-chips]")
if (field !== null) {
  const make = (tag, fields, ...children) => {
    const node = Object.assign(document.createElement(tag), fields)
    node.append(...children)
    return node
  }
  const values = []
  const label = document.querySelector("label[for=" + field.id + "]")
  // It has lines, so that pasted ones arrive as they are.
  const entry = make("textarea", { id: field.id + "-entry", rows: 1, autocomplete: "off" })
  entry.setAttribute("aria-describedby", field.getAttribute("aria-describedby") ?? "")
  const chips = make("span", { className: "chips" })
  chips.setAttribute("role", "list")
  chips.setAttribute("aria-label", "Addresses")
  const state = make("small", {})
  state.setAttribute("role", "status")
  const faultOf = (text) => {
    if (/^[a-z0-9][a-z0-9-]*$/.test(text) && text.length <= ${slugCharsMax}) return
    if (!/^https?:[/][/][^/?#]/i.test(text)) return "no name and no http or https address"
    if (text.length > ${uriCharsMax}) return "too long"
    try {
      const { password, username } = new URL(text)
      return username + password === "" ? undefined : "with a user name or password"
    } catch {
      return "no http or https address"
    }
  }
  // A pasted address may have a comma: that separates before another address, and at the end.
  const separators = /\\s+|,(?=\\s|$|https?:)/i
  const removeAt = (at) => {
    values.splice(at, 1)
    show()
    const buttons = [...chips.querySelectorAll("button")]
    ;(buttons[at] ?? buttons[at - 1] ?? entry).focus()
  }
  const chipOf = (text, at) => {
    const fault = faultOf(text)
    const button = make("button", { type: "button", className: "small", textContent: "\\u00d7" })
    button.setAttribute("aria-label", "Remove " + text)
    button.addEventListener("click", () => removeAt(at))
    const sign = make("b", {
      className: fault === undefined ? "good" : "bad",
      textContent: fault === undefined ? "\\u2713" : "\\u2717"
    })
    const about = fault === undefined ? [] : [make("small", { className: "fault" }, fault)]
    const chip = make("span", { className: "chip" }, sign, make("span", {}, text, ...about), button)
    chip.setAttribute("role", "listitem")
    return chip
  }
  const show = () => {
    const faults = values.filter((text) => faultOf(text) !== undefined).length
    chips.replaceChildren(...values.map(chipOf))
    field.value = values.join("\\n")
    entry.required = values.length === 0
    entry.setCustomValidity(
      faults === 0 ? "" : "Remove or correct the addresses with a fault: " + faults + "."
    )
    const counted = values.length === 1 ? "1 address" : values.length + " addresses"
    state.textContent = values.length === 0
      ? ""
      : counted + (faults === 0 ? "." : ", " + faults + " with a fault.")
  }
  const take = (isWhole) => {
    const parts = entry.value.split(separators)
    const rest = isWhole ? "" : parts.pop()
    for (const part of parts) if (part !== "" && !values.includes(part)) values.push(part)
    entry.value = rest
    show()
  }
  entry.addEventListener("input", (event) => {
    if (separators.test(entry.value)) take(event.inputType === "insertFromPaste")
    else if (event.inputType === "insertFromPaste") take(true)
  })
  entry.addEventListener("keydown", (event) => {
    const { isComposing, key } = event
    if (isComposing) return
    if (key === "Enter") {
      event.preventDefault()
      take(true)
    } else if (key === "Backspace" && entry.value === "" && values.length > 0) {
      event.preventDefault()
      entry.value = values.pop()
      show()
    }
  })
  field.form.addEventListener("submit", (event) => {
    take(true)
    if (!entry.checkValidity()) {
      event.preventDefault()
      entry.reportValidity()
    }
  })
  for (const part of field.value.split(separators)) if (part !== "") values.push(part)
  label.htmlFor = entry.id
  field.required = false
  field.hidden = true
  field.before(chips, entry, state)
  show()
}
`
