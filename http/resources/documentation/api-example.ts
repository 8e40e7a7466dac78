/** Examples of bodies, made from their schemas: what a schema demands, and few other properties. */
import type { DocumentPart } from "../../formats/openapi/index.ts"
import { isPartOf, listOf, partOf, textOf } from "./document-part.ts"

/** Values of properties with these names; one that its schema does not accept is not used. */
const valuesByName: Readonly<Record<string, string>> = {
  account: "alice",
  age: "37",
  callback: "https://example.org/hook",
  continue: "true",
  currency: "USD",
  description: "About the keys",
  expires: "P30D",
  host: "spam.example",
  href: "https://example.org/mailboxes/alice",
  id: "c1",
  name: "alice",
  network: "203.0.113.0/24",
  on: "customers",
  price: "12.50",
  reason: "spam",
  return: "name age",
  secret: "a-long-random-text",
  status: "received",
  symbol: "ACME",
  text: "Sir Lancelot",
  time: "2030-01-31T12:00:00Z",
  title: "All the post",
  to: "https://example.org/mailboxes/alice",
  url: "https://example.org/keys"
}

/** Values of any property, by what schemas of this service ask for. */
const otherValues = [
  "Hello",
  "alice",
  "7",
  "12.50",
  "P30D",
  "2030-01-31T12:00:00Z",
  "https://example.org/",
  "text/plain",
  "USD",
  ""
]

const valuesByFormat: Readonly<Record<string, string>> = {
  "date-time": "2030-01-31T12:00:00Z",
  uri: "https://example.org/",
  "uri-reference": "https://example.org/"
}

/** Whether a text satisfies the pattern, the format and the lengths of its schema. */
const isAccepted = (schema: DocumentPart, value: string): boolean => {
  const { maxLength, minLength } = schema
  const pattern = textOf(schema["pattern"])
  const format = textOf(schema["format"])
  const isFormat = format === "date-time"
    ? /^\d{4}-\d\d-\d\dT/.test(value)
    : !format.startsWith("uri") || /^https?:/.test(value)
  return isFormat && (pattern === "" || new RegExp(pattern, "u").test(value)) &&
    (typeof minLength !== "number" || value.length >= minLength) &&
    (typeof maxLength !== "number" || value.length <= maxLength)
}

const textExample = (schema: DocumentPart, name: string): string => {
  const [first] = listOf(schema["enum"])
  if (first !== undefined) return String(first)
  const named = Object.hasOwn(valuesByName, name) ? valuesByName[name] : undefined
  const ofFormat = valuesByFormat[textOf(schema["format"])]
  const candidates = [named, ofFormat, ...otherValues].filter((value) => value !== undefined)
  return candidates.find((value) => isAccepted(schema, value)) ?? ""
}

const formType = "application/x-www-form-urlencoded"

/** Properties that an example has although its schema does not demand them. */
const alwaysShown: ReadonlyArray<string> = ["id", "symbol", "text", "url"]

/** The item of a notification, whose schema may demand nothing. */
const item = { description: "About the keys", url: "https://example.org/keys" }

export class ApiExamples {
  private readonly resolve: (part: unknown) => DocumentPart

  /** `resolve` follows the reference of a part. */
  constructor(resolve: (part: unknown) => DocumentPart) {
    this.resolve = resolve
  }

  /** A body of these types; undefined for one that is not a document. */
  bodyOf(types: ReadonlyArray<string>, schema: DocumentPart): string | undefined {
    const value = this.valueOf(schema, "")
    if (!isPartOf(value) || Object.keys(value).length === 0) return undefined
    if (!types.includes(formType) || types.includes("application/json")) {
      return JSON.stringify(value, null, 2)
    }
    const pairs = Object.entries(value).map(([name, one]): [string, string] => [name, String(one)])
    return new URLSearchParams(pairs).toString()
  }

  private valueOf(schema: unknown, name: string): unknown {
    const part = this.resolve(schema)
    const [choice] = [...listOf(part["anyOf"]), ...listOf(part["oneOf"])]
    if (choice !== undefined) return this.valueOf(choice, name)
    const type = part["type"]
    switch (Array.isArray(type) ? type[0] : type) {
      case "object":
        return name === "item" ? item : this.objectOf(part)
      case "array":
        return [this.valueOf(part["items"], name)]
      case "integer":
      case "number":
        return part["default"] ?? part["minimum"] ?? 1
      case "boolean":
        return true
      default:
        return textExample(part, name)
    }
  }

  private objectOf(schema: DocumentPart): DocumentPart {
    const required = listOf(schema["required"])
    const own = Object.entries(partOf(schema["properties"]))
      .filter(([, property]) => partOf(property)["readOnly"] !== true)
    const needed = own.filter(([name]) => required.includes(name) || alwaysShown.includes(name))
    // A document that demands nothing is clearer with a field than empty.
    const shown = needed.length > 0 ? needed : own.slice(0, 1)
    return Object.fromEntries(
      shown.map(([name, property]) => [name, this.valueOf(property, name)])
    )
  }
}
