/**
 * JSON Schemas (2020-12, as in OpenAPI 3.1) of the service's documents. One schema describes both
 * forms of a document: `xml` maps its JSON to XML (`../xml/json.ts`).
 */

import { plainTextTagsMax, slugCharsMax, uriCharsMax } from "../../limits.ts"

/** A schema, or a part of one. */
export interface Schema {
  readonly [keyword: string]: unknown
}

/** The properties of a document, by their names in JSON. */
export interface Properties {
  readonly [name: string]: Schema
}

/** For a class of a pattern: what XML cannot hold (XML 1.0 §2.2), so that no document has it. */
export const forbidden = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\ufffe\\uffff"

/** For a class of a pattern: the spaces that a document can hold. */
export const spaces =
  "\\u0009\\u000a\\u000d\\u0020\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f"
  + "\\u3000\\ufeff"

/** The pattern of what the service removes at both ends of a field. */
export const spacesPattern = `[${spaces}]*`

export const text: Schema = { type: "string", pattern: `^[^${forbidden}]*$` }

/** A text of one visible character or more. */
export const visibleText: Schema = {
  type: "string",
  pattern: `^[^${forbidden}]*[^${forbidden}${spaces}][^${forbidden}]*$`
}

/** Of the name of a mailbox or an account. */
export const slugPattern = `^[a-z0-9][a-z0-9-]{0,${slugCharsMax - 1}}$`

export const slug: Schema = { type: "string", pattern: slugPattern }

export const uri: Schema = { type: "string", format: "uri-reference" }

/** An absolute http or https URI as clients send it. */
export const webUri: Schema = {
  type: "string",
  format: "uri",
  pattern: "^[hH][tT][tT][pP][sS]?://[^/?#]",
  maxLength: uriCharsMax
}

/** RFC 3339. */
export const dateTime: Schema = { type: "string", format: "date-time" }

/** A number as documents write it: text of digits. */
export const digits: Schema = { type: "string", pattern: "^[0-9]+(\\.[0-9]+)?$" }

/** The hidden field of a form with the version of what its page shows. */
export const pageVersion: Schema = {
  type: "string",
  pattern: "^[\\w-]{0,22}$",
  description: "That of the page: another one than the current is 412."
}

/**
 * The pattern of at most `digitsMax` digits whose value is at most `max`, which is an integer of no
 * more digits. Leading zeros count as digits; no digits at all fit, too.
 */
export const patternUpTo = (max: number, digitsMax: number): string => {
  const bound = String(max)
  const below = Array.from(bound, (digit, at) => {
    const last = digit === "0" ? [] : [`[0-${Number(digit) - 1}]`]
    return last.map((one) => `${bound.slice(0, at)}${one}[0-9]{${bound.length - at - 1}}`)
  })
  const same = [bound, ...below.flat()].join("|")
  return `^([0-9]{0,${bound.length - 1}}|0{0,${digitsMax - bound.length}}(${same}))$`
}

export const flag: Schema = { type: "string", enum: ["true", "false"] }

export const oneOf = (...values: ReadonlyArray<string>): Schema => ({
  type: "string",
  enum: values
})

/** An attribute of a listing from a cursor. */
export const discardedSchema: Schema = {
  ...oneOf("true"),
  description: "What followed `since` has been removed; the listing goes on with what is kept."
}

/** The schema as an attribute in XML. */
export const attribute = (schema: Schema): Schema => ({ ...schema, xml: { attribute: true } })

/**
 * The schema as an element that may also be an attribute: where a listing shows it so, or where the
 * service reads both.
 */
export const elementOrAttribute = (schema: Schema): Schema => ({
  ...schema,
  xml: { "x-element-or-attribute": true }
})

const xmlOf = ({ xml }: Schema): Schema => typeof xml === "object" ? { ...xml } : {}

/** Whether a property may be an attribute in XML. */
export const isAttribute = (schema: Schema): boolean => {
  const xml = xmlOf(schema)
  return xml["attribute"] === true || xml["x-element-or-attribute"] === true
}

/** Whether a property may be an element; JSON does not tell an ignored attribute from one. */
export const isElement = (schema: Schema): boolean =>
  xmlOf(schema)["attribute"] !== true || schema["readOnly"] === true

export const attributes = (properties: Properties): Properties =>
  Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, attribute(one)]))

/** A repeated element: siblings in XML, an array in JSON. */
export const list = (items: Schema): Schema => ({ type: "array", items })

/** A list that is not empty. */
export const someOf = (items: Schema): Schema => ({ ...list(items), minItems: 1 })

/** A schema of the document's components by its name. */
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** The property of the text of an element that is an object in JSON; never an element in XML. */
export const textProperty = "text"

/** The text of an element that is an object in JSON: it has attributes, or is the root. */
export const elementText = (about: string): Properties => ({
  [textProperty]: { ...text, description: `${about} In XML the text of the element itself.` }
})

/** An element with attributes or children; `required` are the names of those always present. */
export const object = (properties: Properties, required: ReadonlyArray<string> = []): Schema => ({
  type: "object",
  properties,
  ...required.length === 0 ? {} : { required },
  additionalProperties: false
})

/** A document, and the name of its root element. */
export const rootElement = (
  name: string,
  properties: Properties,
  required: ReadonlyArray<string> = []
): Schema => ({ ...object(properties, required), xml: { name } })

/** The schema with unknown elements, which the service stores and serves unchanged. */
export const extensible = (schema: Schema): Schema => ({ ...schema, additionalProperties: true })

/**
 * Properties that answers show and requests may repeat: the service ignores them, so that a client
 * can send back what it has read.
 */
export const ignored = (properties: Properties): Properties =>
  Object.fromEntries(
    Object.entries(properties).map(([name, one]) => [name, { ...one, readOnly: true }])
  )

/** A form of a page (`application/x-www-form-urlencoded`); unknown fields are ignored. */
export const formSchema = (
  fields: ReadonlyArray<string> | Properties,
  required: ReadonlyArray<string> = []
): Schema => {
  const isNames = (value: ReadonlyArray<string> | Properties): value is ReadonlyArray<string> =>
    Array.isArray(value)
  const properties = isNames(fields)
    ? Object.fromEntries(fields.map((name) => [name, text]))
    : fields
  return { ...object(properties, required), additionalProperties: true }
}

/** The fields of a form that describe a notification; browsers send empty ones. */
export const describingFormFields: Properties = {
  priority: {
    ...oneOf("", "1", "min", "2", "low", "3", "default", "4", "high", "5", "max", "urgent"),
    description: "1 (min) to 5 (max or urgent)."
  },
  tags: {
    type: "string",
    pattern: `^[^,${forbidden}]*(,[^,${forbidden}]*){0,${plainTextTagsMax - 1}}$`,
    description: `At most ${plainTextTagsMax}, between commas.`
  },
  click: {
    type: "string",
    pattern: "^ *$|^[hH][tT][tT][pP][sS]?://[!\"$-.0->@-~][!-~]*$",
    maxLength: uriCharsMax,
    description: "An http or https URI that the reader is to open."
  }
}
