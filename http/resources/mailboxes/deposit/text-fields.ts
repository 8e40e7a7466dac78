/**
 * The header fields that describe a deposit of plain text, with the names and values of ntfy:
 * Priority, Tags, Click, each also with `X-` before it. They become elements of the item, which
 * readers get as any unknown element of a notification; the pages show them. There is no field for
 * the title, which the first line of the text is: the parser of requests cuts off what is not ASCII
 * at the ends of a field.
 */
import { parseUrl } from "../../../../actors/index.ts"
import { element, failure, type Result, success, writeElement } from "../../../formats/xml/index.ts"
import { plainTextTagsMax, uriCharsMax } from "../../../limits.ts"
import { type HttpError, httpError } from "../../../pipeline/index.ts"
import type { RequestHeaders } from "../../../wire/index.ts"
import { tagsIn } from "../listing/index.ts"

/** The least is 1, the greatest 5; 3 is usual. */
const priorities: ReadonlyMap<string, string> = new Map([
  ["1", "1"],
  ["min", "1"],
  ["2", "2"],
  ["low", "2"],
  ["3", "3"],
  ["default", "3"],
  ["4", "4"],
  ["high", "4"],
  ["5", "5"],
  ["max", "5"],
  ["urgent", "5"]
])

/** The priority that browsers give their own requests (RFC 9218), in the field of the same name. */
const requestPriority = /^(?:u=\d|i(?:=\?[01])?)(?:\s*,|$)/

const leaf = (name: string, text: string): string => writeElement(element(name, {}, text))

/** The element of a priority by its number or name, in any case; empty for a text that is none. */
export const priorityElement = (text: string): string => {
  const level = priorities.get(text.toLowerCase())
  return level === undefined ? "" : leaf("priority", level)
}

/** The element of the first tags in a text that commas separate; empty without any. */
export const tagsElement = (text: string): string => {
  const tags = tagsIn(text).slice(0, plainTextTagsMax)
  return tags.length === 0 ? "" : leaf("tags", tags.join(","))
}

/** The element of what a person is to open; empty for a text that is no http or https URI. */
export const clickElement = (text: string): string =>
  text.length <= uriCharsMax && /^https?:\/\/[^/?#]/i.test(text) && /^[\x21-\x7e]+$/.test(text) &&
    parseUrl(text) !== undefined
    ? leaf("click", text)
    : ""

type Elements = Result<string, HttpError>

const refused = (what: string): Elements =>
  failure(httpError("unprocessable", `${what}; nothing was stored`))

const readPriority = (text: string): Elements => {
  if (requestPriority.test(text)) return success("")
  const found = priorityElement(text)
  return found === ""
    ? refused("Priority must be 1 to 5, or min, low, default, high, max or urgent")
    : success(found)
}

const readTags = (text: string): Elements => {
  if (!/^[\t\x20-\x7e]*$/.test(text)) return refused("Tags must be of ASCII characters")
  return tagsIn(text).length > plainTextTagsMax
    ? refused(`Tags has more than ${plainTextTagsMax}`)
    : success(tagsElement(text))
}

const readClick = (text: string): Elements => {
  const found = clickElement(text)
  return found === ""
    ? refused(`Click must be an http or https URI of at most ${uriCharsMax} characters`)
    : success(found)
}

const fields = [["priority", readPriority], ["tags", readTags], ["click", readClick]] as const

/** The elements of the fields, as XML. Fails with 422 for a value that is none. */
export const readTextFields = (headers: RequestHeaders): Elements => {
  let elements = ""
  for (const [name, read] of fields) {
    const text = (headers.get(name) ?? headers.get(`x-${name}`))?.trim() ?? ""
    const one = text === "" ? success("") : read(text)
    if (!one.ok) return one
    elements += one.value
  }
  return success(elements)
}
