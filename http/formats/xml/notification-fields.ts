/**
 * What describes a notification beside its text, with the names and values of ntfy: priority, tags,
 * and what a person is to open. They are elements of the item, which readers get as any unknown
 * element of a notification; the pages show them.
 */
import { parseUrl } from "../../../actors/index.ts"
import { plainTextTagsMax, uriCharsMax } from "../../limits.ts"
import { element, failure, isText, type Result, success, writeElement } from "./element.ts"

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

const leaf = (name: string, text: string): string => writeElement(element(name, {}, text))

/** The tags in a text that commas separate. */
export const tagsIn = (text = ""): ReadonlyArray<string> =>
  text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "")

/** The element of a priority by its number or name; empty for a text that is none. */
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

/** The names of the fields that describe a notification beside its text. */
export const describingFields = ["priority", "tags", "click"] as const

type DescribingField = typeof describingFields[number]

/** A field with another value than it may have. */
export interface FieldFault {
  readonly name: DescribingField
  /** What follows the name, as in `must be …`. */
  readonly fault: string
}

const elementOf = (name: DescribingField, text: string): Result<string, string> => {
  switch (name) {
    case "priority": {
      const found = priorityElement(text)
      return found === ""
        ? failure("must be 1 to 5, or min, low, default, high, max or urgent")
        : success(found)
    }
    case "tags":
      if (!isText(text)) return failure("holds a control character")
      return tagsIn(text).length > plainTextTagsMax
        ? failure(`has more than ${plainTextTagsMax}`)
        : success(tagsElement(text))
    case "click": {
      const found = clickElement(text)
      return found === ""
        ? failure(`must be an http or https URI of at most ${uriCharsMax} characters`)
        : success(found)
    }
  }
}

/** The elements of the fields, as XML; an empty field counts as none. */
export const describingElements = (
  fieldOf: (name: DescribingField) => string | undefined
): Result<string, FieldFault> => {
  let elements = ""
  for (const name of describingFields) {
    const text = fieldOf(name)?.trim() ?? ""
    const one = text === "" ? success("") : elementOf(name, text)
    if (!one.ok) return failure({ name, fault: one.fault })
    elements += one.value
  }
  return success(elements)
}
