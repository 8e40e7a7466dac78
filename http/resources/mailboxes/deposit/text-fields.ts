/**
 * The header fields that describe a deposit of plain text: Priority, Tags, Click, each also with
 * `X-` before it. There is no field for the title, which the first line of the text is: the parser
 * of requests cuts off what is not ASCII at the ends of a field.
 */
import { describingElements, failure, type Result } from "../../../formats/xml/index.ts"
import { type HttpError, httpError } from "../../../pipeline/index.ts"
import type { RequestHeaders } from "../../../wire/index.ts"

/** The priority that browsers give their own requests (RFC 9218), in the field of the same name. */
const requestPriority = /^(?:u=\d|i(?:=\?[01])?)(?:\s*,|$)/

const names = { priority: "Priority", tags: "Tags", click: "Click" }

const refused = (what: string) => failure(httpError("unprocessable", `${what}; nothing was stored`))

/** The elements of the fields, as XML. Fails with 422 for a value that is none. */
export const readTextFields = (headers: RequestHeaders): Result<string, HttpError> => {
  const given = (name: string) => headers.get(name) ?? headers.get(`x-${name}`)
  const isAscii = /^[\t\x20-\x7e]*$/.test(given("tags")?.trim() ?? "")
  const elements = describingElements((name) => {
    const text = given(name)
    const isOfRequest = name === "priority" && requestPriority.test(text?.trim() ?? "")
    return isOfRequest || (name === "tags" && !isAscii) ? undefined : text
  })
  if (!elements.ok) return refused(`${names[elements.fault.name]} ${elements.fault.fault}`)
  return isAscii ? elements : refused("Tags must be of ASCII characters")
}
